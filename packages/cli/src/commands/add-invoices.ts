import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { CommandContext } from '../command-context.ts'
import { month } from '../option-values.ts'

/** What the commands are added to, and with. */
interface Parts {
  readonly program: Command
  readonly common: (command: Command) => Command
  readonly context: CommandContext
  /** Ends a command whose answer is no with exit code 1. */
  readonly exitUnless: (isYes: boolean) => void
}

/** Adds `weir invoices`. */
export function addInvoiceCommands({ program, common, context, exitUnless }: Parts): void {
  const load = () => import('./invoices.ts')
  const invoices = program.command('invoices').description('Close months, and show what was invoiced.')
  common(invoices.command('close'))
    .description(
      'Close a month of every subject with a price list, or an invoice of the month before; exit code 1 if one stays open.',
    )
    .argument('<month>', 'such as 2026-11', month)
    .option('--subject <id...>', 'only of these subjects')
    .option('--grace <duration>', 'how long records may be late', '1h')
    .option('--accept-gaps <reason>', 'close although records are missing; the invoices print the reason')
    .action(async (period: string, options) => exitUnless(await (await load()).closeInvoices(period, options, context)))
  common(invoices.command('list'))
    .description('List what was closed, by subject and month.')
    .option('--period <month>', 'only of this month', month)
    .option('--subject <id>', 'only of this subject')
    .action(async (options) => (await load()).listInvoices(options, context))
  common(invoices.command('show'))
    .description('Show one invoice; --json prints it to the byte.')
    .argument('<id>')
    .option('--csv', 'print CSV', false)
    .action(async (id: string, options) => (await load()).showInvoice(id, options, context))
  common(invoices.command('preview'))
    .description('Show what the running month of a subject costs so far, and at this pace.')
    .argument('<subject>')
    .action(async (subject: string, options) => (await load()).previewInvoice(subject, options, context))
  common(invoices.command('export'))
    .description('Print what closed invoices count, as Stripe or Lago import it.')
    .requiredOption('--period <month>', 'such as 2026-11', month)
    .addOption(
      new Option('--to <system>', 'stripe: CSV; lago: one request body a line')
        .choices(['stripe', 'lago'])
        .makeOptionMandatory(),
    )
    .option('--subject <id>', 'only of this subject')
    .addOption(
      new Option('--customers <file>', 'JSON: what the system calls each subject; its own name without it').argParser(
        (path: string) => resolve(context.cwd, path),
      ),
    )
    .action(async (options) => (await import('./export-invoices.ts')).exportInvoices(options, context))
}
