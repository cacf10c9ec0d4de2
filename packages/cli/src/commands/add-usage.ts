import { orders, querySteps, usageDimensions } from '@weir/api/query/columns.ts'
import { usageParameters } from '@weir/api/query/parameters.ts'
import { Option } from 'commander'
import type { CommandParts } from '../command-parts.ts'
import { withExamples } from '../help-examples.ts'
import { wholeNumber } from '../option-values.ts'
import { addSpendCommands } from './add-spend.ts'

interface Described {
  readonly description?: string
}

/** `key_id` as `key-id`. */
const inOption = (name: string) => name.replaceAll('_', '-')

/** Parameters that the command sets itself; `--no-other` is an option. */
const isOwn = (name: string) => ['after', 'csv', 'numbers', 'other'].includes(name)

/** Adds `weir usage`, `weir spend` and `weir why`. */
export function addUsageCommands(parts: CommandParts): void {
  const { program, common, context, file } = parts
  const usage = common(program.command('usage'))
    .description('Say who used what: units, decisions and refusals, by any of their dimensions.')
    .option(
      '--from <time>',
      'RFC 3339, a date, which begins in the time zone, or now-24h; 24 hours before --to without it',
    )
    .option('--to <time>', 'the same; now without it')
    .option('--by <names>', `up to four of ${usageDimensions.join(', ')}, in commas`, '')
    .option('--step <step>', querySteps.join(', '), 'total')
    .option('--period <month>', 'instead of both, with one --subject or --price: 2026-11, current or previous')
    .option('--time-zone <zone>', "where dates, days, weeks and months begin: UTC, with --period the subject's own")
    .option('--top <n>', 'only so many groups, and one row for the others', wholeNumber(1, 1_000))
    .option('--order <measure>', `${orders.join(', ')}; with - before it the largest first`)
    .option('--fill <how>', 'zero: every group has a row of each step')
    .option('--no-other', 'no row for the other groups')
    .option('--compare [time]', 'with the span before, or the one that begins then, of the same length')
    .option('--price', 'what whole months of each subject cost, by --step month or total', false)
    .option('--limit <n>', 'rows at most', wholeNumber(1, 1_000_000), 1_000)
    .addOption(
      new Option('--format <format>', 'the whole answer as a file, instead of a table')
        .choices(['csv', 'jsonl', 'parquet'])
        .conflicts('json'),
    )
    .addOption(file('--output <file>', 'where that is written, once it is whole; standard output'))
    .option('--exact', "with --format csv: no ' before texts that a spreadsheet takes for formulas", false)
  for (const name of usageDimensions.map(inOption)) {
    usage.option(`--${name} <value...>`, 'only these').option(`--not-${name} <value...>`, 'all but these')
  }
  // What else the API takes, in its own words.
  for (const [name, schema] of Object.entries(usageParameters)) {
    if (isOwn(name) || usage.options.some((one) => one.name() === inOption(name))) continue
    usage.option(`--${inOption(name)} <value>`, (schema as Described).description)
  }
  usage.action(async (options) => (await import('./usage.ts')).showUsage(options, context))
  withExamples(usage, [
    ['usage --by subject --top 10', 'who used most in the last 24 hours'],
    ['usage --subject acme --by route,outcome --step day --from now-7d', 'one customer, day by day'],
    ['usage --by subject --format csv --output usage.csv', 'the whole answer as a file'],
    ['usage --price --period 2026-10', 'what every customer spent in October'],
  ])

  addSpendCommands(usage, parts)

  const why = common(program.command('why'))
    .description('Explain a decision: why it came out as it did, and what would have admitted it.')
    .argument('[id]', 'as in the header Weir-Decision; - takes it from an answer that is pasted on standard input')
    .option('--subject <id>', 'with --last: whose')
    .option('--last', 'the newest refusal of --subject')
    .action(async (id: string | undefined, options) => (await import('./why.ts')).explainDecision(id, options, context))
  withExamples(why, [['why --subject acme --last', 'the newest refusal of a customer']])
}
