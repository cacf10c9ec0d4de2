import { type Command, Option } from 'commander'
import type { CommandParts } from '../command-parts.ts'
import { withExamples } from '../help-examples.ts'

/** Adds `weir usage export` and `weir spend`. */
export function addSpendCommands(usage: Command, { program, common, context, file }: CommandParts): void {
  const exported = common(usage.command('export'))
    .description('Print usage by price line, in whole hours, for billing systems.')
    .option('--from <time>', 'start of the first export: RFC 3339, a date, or now-24h')
    .addOption(file('--state <file>', 'file that records where the last export stopped'))
    .option('--again', 'with --state: repeat the last export, with the same ids', false)
    .addOption(
      new Option('--to <system>', 'stripe: CSV of meter events; lago: a request body a line; plain CSV without it')
        .choices(['stripe', 'lago'])
        .conflicts('json'),
    )
    .addOption(
      file('--customers <file>', 'JSON that maps subjects to their names in the billing system (default: their own)'),
    )
    .action(async (options) => (await import('./export-usage.ts')).exportUsage(options, context))
  withExamples(exported, [
    ['usage export --from now-7d', 'the last week, as CSV'],
    ['usage export --state usage.json --from 2026-11-01 --to stripe', 'a first export; later ones without --from'],
  ])

  const spend = common(program.command('spend'))
    .description("Show the cost of a subject's current month, to date and as a forecast.")
    .argument('<subject>')
    .action(async (subject: string, options) => (await import('./spend.ts')).showSpend(subject, options, context))
  withExamples(spend, [['spend acme', 'this month of a customer']])
}
