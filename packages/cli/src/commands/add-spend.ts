import { type Command, Option } from 'commander'
import type { CommandParts } from '../command-parts.ts'
import { withExamples } from '../help-examples.ts'

/** Adds `weir usage export` and `weir spend`. */
export function addSpendCommands(usage: Command, { program, common, context, file }: CommandParts): void {
  const exported = common(usage.command('export'))
    .description('Print the usage of whole hours by line of the price list, for billing systems. Sends nothing.')
    .option('--from <time>', 'first hour of a first export: RFC 3339, a date, or now-24h')
    .addOption(file('--state <file>', 'goes on where the last export with this file ended; replaced each time'))
    .option('--again', 'the rows of the last export with --state once more, with the same ids', false)
    .addOption(
      new Option('--to <system>', 'stripe: CSV of meter events; lago: a request body a line; plain CSV without it')
        .choices(['stripe', 'lago'])
        .conflicts('json'),
    )
    .addOption(file('--customers <file>', 'JSON: what the system calls each subject; its own name without it'))
    .action(async (options) => (await import('./export-usage.ts')).exportUsage(options, context))
  withExamples(exported, [
    ['usage export --from now-7d', 'the last week, as CSV'],
    ['usage export --state usage.json --from 2026-11-01 --to stripe', 'a first export; later ones without --from'],
  ])

  const spend = common(program.command('spend'))
    .description('Say what the running month of a subject costs so far, and at this pace.')
    .argument('<subject>')
    .action(async (subject: string, options) => (await import('./spend.ts')).showSpend(subject, options, context))
  withExamples(spend, [['spend acme', 'this month of a customer']])
}
