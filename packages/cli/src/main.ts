import { resolve } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { Command, InvalidArgumentError, Option } from 'commander'
import { inProject, type Surroundings } from './project.ts'

/** Ingress processes on one machine; more than this is a mistake. */
const ingressMax = 64

const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop.abort())

/** npm does not hand on its own death: started by it, we end when our parent has become another. */
function stopWithNpm(): void {
  const npm = process.ppid
  const look = setInterval(() => process.ppid !== npm && stop.abort(), 500)
  look.unref()
}
if (process.env.npm_lifecycle_event !== undefined) stopWithNpm()

const around: Surroundings = {
  environment: process.env,
  // npm and the launcher may stand elsewhere than the person who typed.
  cwd: process.env.INIT_CWD ?? process.cwd(),
  say: (line) => process.stderr.write(`weir: ${line}\n`),
  print: (text) => process.stdout.write(`${text}\n`),
  signal: stop.signal,
}

const inCwd = (path: string) => resolve(around.cwd, path)

const wholeNumber = (min: number, max: number) => (value: string) => {
  const number = Number(value)
  if (/^\d+$/.test(value) && number >= min && number <= max) return number
  throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
}

const given = (name: string): string => {
  const value = process.env[name]
  if (value) return value
  throw new WeirError('CONFIG_INVALID', `${name} is not set.`)
}

// Each command is loaded when it is called: none waits for the libraries of the others.
const program = new Command('weir')
  .description('Decides, records, meters and alerts on API usage.')
  .showHelpAfterError('(./weir help tells what there is)')
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'weir: ')) })

const policyOption = () => new Option('--policy <file>', 'the policy').default(inProject('weir.yaml')).argParser(inCwd)

const dataOption = () =>
  new Option('--data <dir>', 'where data, logs and keys are kept').default(inProject('.weir', 'data')).argParser(inCwd)

program
  .command('up')
  .description('Start everything on this machine and keep it running.')
  .addOption(policyOption())
  .addOption(dataOption())
  .addOption(new Option('--ports <mode>', 'fixed ports, or free ones').choices(['fixed', 'auto']).default('fixed'))
  .option('--ingress <n>', 'number of ingress processes', wholeNumber(1, ingressMax), 1)
  .option('--json', 'print one line of JSON when all is ready', false)
  .option('--watch', 'restart a service when its sources change', false)
  .action(async (options) => (await import('./commands/up.ts')).up(options, around))

program
  .command('check')
  .description('Try the policy and the environment without starting anything.')
  .addOption(policyOption())
  .option('--json', 'print {ok, problems}', false)
  .action(async (options) => {
    const { check } = await import('./commands/check.ts')
    if (!check(options, around).ok) process.exitCode = 2
  })

/** Commands about limits ask the Redis of WEIR_REDIS_URL, else that of the `weir up` on the data directory. */
const aboutLimits = (command: Command) =>
  command
    .requiredOption('--subject <id>', 'whose limits')
    .option('--key-id <id>', 'for limits counted by key: the id of the key')
    .option('--ip <address>', 'for limits counted by address')
    .addOption(policyOption().default(process.env.WEIR_POLICY_FILE || inProject('weir.yaml')))
    .addOption(dataOption())
    .option('--json', 'print JSON', false)

aboutLimits(program.command('explain'))
  .description('Say which limits a request meets, why, and how they stand.')
  .requiredOption('--route <request>', 'method and path, such as "POST /v1/search"')
  .action(async (options) => (await import('./commands/explain.ts')).explain(options, around))

const limits = program.command('limits').description('Look at the limits of a subject, or let it begin anew.')
const limitsCommand = (name: string, what: string) =>
  aboutLimits(limits.command(name))
    .description(what)
    .option('--route <request>', 'only what counts for this request: method and path')
    .option('--limit <name>', 'only this limit')
limitsCommand('peek', 'Show how its limits stand.').action(async (options) =>
  (await import('./commands/limits.ts')).peekLimits(options, around),
)
limitsCommand('reset', 'Forget what was counted, and lift blocks.').action(async (options) =>
  (await import('./commands/limits.ts')).resetLimits(options, around),
)
limitsCommand('unblock', 'Lift blocks; what was counted stays.').action(async (options) =>
  (await import('./commands/limits.ts')).unblockLimits(options, around),
)

program
  .command('test')
  .description('Run the tests: all that need no name, or the tiers named.')
  .argument('[tier...]')
  .action(async (tiers: string[]) => {
    const { test } = await import('./commands/test.ts')
    if (!(await test(tiers, around))) process.exitCode = 1
  })

program
  .command('bench')
  .description('Measure: ./weir bench NAME. Without a name, list what can be measured.')
  .argument('[name]')
  .option('--rounds <n>', 'interleaved rounds', wholeNumber(1, 100), 5)
  .option('--json', 'print the report as JSON', false)
  .action(async (name: string | undefined, options) =>
    (await import('./commands/bench.ts')).bench(name, options, around),
  )

program
  .command('topics')
  .description('Create the topics in the Kafka of WEIR_KAFKA_BROKERS.')
  .action(async () => {
    const { createTopics } = await import('./commands/topics.ts')
    await createTopics(given('WEIR_KAFKA_BROKERS'), around.say)
  })

program
  .command('migrate')
  .description('Bring the tables of WEIR_CLICKHOUSE_URL up to date.')
  .action(async () => {
    const { applyMigrations } = await import('./commands/migrate.ts')
    await applyMigrations(given('WEIR_CLICKHOUSE_URL'), around.say)
  })

try {
  await program.parseAsync()
} catch (error) {
  if (stop.signal.aborted) around.say('stopped while starting')
  else if (error instanceof WeirError) around.say(`${error.message} [${error.code}]`)
  else throw error
  process.exitCode = error instanceof WeirError && error.code.endsWith('_INVALID') ? 2 : 1
}
// Nothing that a command opened may keep the process; what it had to wait for, it has waited for.
process.exit()
