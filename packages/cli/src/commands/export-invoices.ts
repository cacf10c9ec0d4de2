import { WeirError } from '@weir/core/errors.ts'
import type { Invoice } from '@weir/core/prices/invoice.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { type BillingEvent, eventsOf, lagoBatches, stripeCsv } from '../invoices/billing-events.ts'
import { readInputFile } from '../read-input-file.ts'
import { type ListedInvoice, pagesOf } from './invoices.ts'

interface ExportOptions extends CommonOptions {
  readonly period: string
  readonly to: 'stripe' | 'lago'
  readonly subject?: string
  /** A file of JSON. */
  readonly customers?: string
}

/** Reads what the system calls each subject; undefined where no file is named. */
function readCustomers(file: string | undefined): ReadonlyMap<string, string> | undefined {
  if (file === undefined) return undefined
  const wrong = new WeirError(
    'CONFIG_INVALID',
    `${file} must be JSON that names the customer of each subject: {"acme": "cus_123"}.`,
  )
  const text = readInputFile(file, 'CONFIG_INVALID', `The file ${file}`)
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    throw wrong
  }
  if (typeof read !== 'object' || read === null || Array.isArray(read)) throw wrong
  const names = new Map<string, string>()
  for (const [subject, customer] of Object.entries(read)) {
    if (typeof customer !== 'string') throw wrong
    names.set(subject, customer)
  }
  return names
}

/** Prints what the invoices of a month count as a billing system takes it. Asks that system nothing. */
export async function exportInvoices(options: ExportOptions, context: CommandContext): Promise<void> {
  const { period, to, subject } = options
  const customers = readCustomers(options.customers)
  const list = { path: '/v1/invoices', query: { period, subject } }
  const listed: ListedInvoice[] = []
  for await (const page of pagesOf<ListedInvoice>(context, options, list)) listed.push(...page)
  const unnamed = listed.filter((one) => customers !== undefined && !customers.has(one.subject))
  if (unnamed.length > 0) {
    const names = unnamed.map((one) => JSON.stringify(one.subject)).join(', ')
    throw new WeirError('CONFIG_INVALID', `${options.customers} names no customer for ${names}. Nothing was printed.`)
  }
  const events: BillingEvent[] = []
  const adjustments: string[] = []
  for (const [at, one] of listed.entries()) {
    context.progress.tell(`${at} of ${listed.length} invoices`, at / listed.length)
    const invoice = await consoleAnswer<Invoice>(context, options, { path: `/v1/invoices/${one.id}` })
    events.push(...eventsOf(invoice, customers?.get(one.subject) ?? one.subject))
    for (const { for_period, units, amount, currency } of invoice.adjustments) {
      adjustments.push(
        `${printable(one.subject)}, of the month from ${for_period}: ${units} units, ${amount} ${currency}`,
      )
    }
  }
  if (options.json) context.print(JSON.stringify(events))
  else if (to === 'stripe') context.print(stripeCsv(events).trimEnd(), 'exactly')
  else for (const batch of lagoBatches(events)) context.print(batch)
  context.report(`${events.length} events of ${listed.length} invoices`)
  for (const adjustment of adjustments) context.report(`not among them is the adjustment of ${adjustment}`)
}
