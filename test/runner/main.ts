/* What `./weir test` and `./weir bench` run: the repository's own scripts, which no installation of Weir needs. */
import { parseArgs } from 'node:util'
import { openCommandContext, reportFailure } from '@weir/cli/command-context.ts'
import { WeirError } from '@weir/core/errors.ts'

const usage = `Usage: weir test [TIER...]
       weir test changed [BASE]
       weir test nightly
       weir test recent
       weir bench [NAME] [--rounds N] [--json]
       weir bench pipeline [--rate N...] [--partitions N...] [--tree DIR...] [--subjects N] [--coalesce]
       weir bench usage [--rows N] [--data DIR]

test    runs the tests: types, lint and all tiers that need no name, or the tiers named; changed runs the test files that
        import, start or read what differs from BASE (main if not given); nightly runs the tiers of test/nightly; recent
        runs all that needs no name, and of test/nightly what the commits of the last day touch
bench   measures one of test/bench in N interleaved rounds (1 to 100, 5 if not given); without a name it lists them;
        pipeline takes rates and partitions as 200,1000 or one by one, and other checkouts, which take turns; how many
        subjects ask (1,000 if not given), and whether their requests of a second share records;
        usage keeps what it fills in DIR, and asks what an earlier run has filled there`

const context = openCommandContext(process.env, (exitCode) => process.exit(exitCode))

function invalid(message: string): never {
  throw new WeirError('COMMAND_INVALID', message)
}

/** The words and options of the call; one that nobody knows is reported with the usage. */
function readCall() {
  const options = {
    rounds: { type: 'string' },
    json: { type: 'boolean' },
    rate: { type: 'string', multiple: true },
    partitions: { type: 'string', multiple: true },
    tree: { type: 'string', multiple: true },
    subjects: { type: 'string', multiple: true },
    coalesce: { type: 'boolean' },
    rows: { type: 'string', multiple: true },
    data: { type: 'string', multiple: true },
    help: { type: 'boolean', short: 'h' },
  } as const
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    return { ...values, command: positionals[0], words: positionals.slice(1) }
  } catch (error) {
    return invalid(`${error instanceof Error ? error.message : error}\n${usage}`)
  }
}

/** Returns the exit code. */
async function run(): Promise<number> {
  const { command, words, rounds = '5', json = false, help, ...given } = readCall()
  if (help) {
    context.print(usage)
    return 0
  }
  if (command === 'test') {
    const own = json ? ['json'] : Object.keys(given)
    if (own.length > 0) invalid(`test has no option --${own[0]}\n${usage}`)
    return (await (await import('./run-tiers.ts')).runTiers(words, context)) ? 0 : 1
  }
  if (!/^[1-9]\d?$|^100$/.test(rounds)) invalid('--rounds must be a whole number from 1 to 100.')
  const [name, ...others] = words
  // `--rate 200 1000`: the option takes the first number, and the next ones are words.
  const rates = given.rate === undefined ? [] : others.filter((word) => /^\d+$/.test(word))
  if (others.length > rates.length) invalid(`bench takes one name\n${usage}`)
  const { rate = [], partitions = [], tree = [], subjects = [], coalesce = false, rows = [], data = [] } = given
  const more = { rate: [...rate, ...rates], partitions, tree, subjects, coalesce, rows, data }
  await (await import('./run-bench.ts')).runBench(name, { rounds: Number(rounds), json, more }, context)
  return 0
}

try {
  process.exitCode = await run()
} catch (error) {
  process.exitCode = reportFailure(error, context)
}
// What a bench opened may not keep the process.
process.exit()
