import { orders, querySteps, unitDimensions, usageDimensions } from '@weir/api/query/columns.ts'
import { usageParameters } from '@weir/api/query/parameters.ts'
import { Option } from 'commander'
import type { CommandParts } from '../command-parts.ts'
import { withExamples } from '../help-examples.ts'
import { labelFilter, wholeNumber } from '../option-values.ts'
import { addRatesCommands } from './add-rates.ts'
import { addSpendCommands } from './add-spend.ts'

interface Described {
  readonly description?: string
}

/** `key_id` as `key-id`. */
const inOption = (name: string) => name.replaceAll('_', '-')

/** Parameters that the command sets itself; `--no-other` is an option. */
const isOwn = (name: string) => ['after', 'csv', 'numbers', 'other'].includes(name)

/** Adds `weir usage`, `weir spend`, `weir rates` and `weir why`. */
export function addUsageCommands(parts: CommandParts): void {
  const { program, common, context, file } = parts
  const usage = common(program.command('usage'))
    .description('Show who used what: units, decisions and refusals, by any dimension.')
    .option('--from <time>', 'start: RFC 3339, a date in --time-zone, or now-24h (default: 24 hours before --to)')
    .option('--to <time>', 'end, in the same formats (default: now)')
    .option('--by <names>', `up to four of ${usageDimensions.join(', ')}, separated by commas`, '')
    .option('--unit <unit...>', 'sum the quantities of these units, such as tokens; --by also takes their columns')
    .option('--dimension <name=value>', 'with --unit: only this label; repeat for any of several', labelFilter)
    .option('--within <subject...>', 'only these subjects and all below them')
    .option('--step <step>', querySteps.join(', '), 'total')
    .option(
      '--period <month>',
      'with one --subject or --price, instead of --from and --to: 2026-11, current or previous',
    )
    .option(
      '--time-zone <zone>',
      "zone of dates, days, weeks and months (default: UTC; with --period the subject's own)",
    )
    .option('--top <n>', 'show the N largest groups and one row for the rest', wholeNumber(1, 1_000))
    .option('--order <measure>', `${orders.join(', ')}; add the prefix - to sort in descending order`)
    .option('--fill <how>', 'zero: add zero rows for groups without usage in a step')
    .option('--no-other', 'omit the row for all other groups')
    .option('--compare [time]', 'compare with the previous period, or with the period that starts at this time')
    .option('--price', 'show the cost per subject in whole months, with --step month or total', false)
    .option('--limit <n>', 'most rows', wholeNumber(1, 1_000_000), 1_000)
    .addOption(
      new Option('--format <format>', 'print the full response in this format')
        .choices(['csv', 'jsonl', 'parquet'])
        .conflicts('json'),
    )
    .addOption(file('--output <file>', 'write the output to this file (default: standard output)'))
    .option('--exact', 'with --format csv: do not escape values that a spreadsheet would run as formulas', false)
  const filters = new Set([...usageDimensions, ...unitDimensions.filter((name) => name !== 'unit')].map(inOption))
  for (const name of filters) {
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
    ['usage --unit tokens --by model,basis --from now-7d', 'tokens by model, and how they are known'],
    ['usage --by subject --format csv --output usage.csv', 'the whole answer as a file'],
    ['usage --price --period 2026-10', 'what every customer spent in October'],
  ])

  addSpendCommands(usage, parts)
  addRatesCommands(parts)

  const why = common(program.command('why'))
    .description('Explain a decision: which limit refused the request, and what would have allowed it.')
    .argument('[id]', 'value of the Weir-Decision header; - reads a pasted response from standard input')
    .option('--subject <id>', 'with --last: the subject')
    .option('--last', 'the newest refusal for --subject')
    .action(async (id: string | undefined, options) => (await import('./why.ts')).explainDecision(id, options, context))
  withExamples(why, [['why --subject acme --last', 'the newest refusal of a customer']])
}
