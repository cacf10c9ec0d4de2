import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import { monthAfter } from '@weir/core/prices/billed-period.ts'
import type { Invoice } from '@weir/core/prices/invoice.ts'
import { printable } from '@weir/core/printable.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { askConsole, type ConsoleRequest, consoleAnswer, requireConsole } from '../console/console-client.ts'
import { textTable } from '../text-table.ts'

/** An invoice as the console lists it. */
export interface ListedInvoice {
  readonly id: string
  readonly subject: string
  readonly period: string
  readonly from: string
  readonly to: string
  readonly closed_at: string
}

interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}
interface NamedBody {
  readonly name: string
  readonly body: { readonly plan?: string; readonly prices?: string }
}

/** Rows of a page: the console's most. */
const pageRowsMax = 1_000
/** Subjects of a request to close: the console's most. */
const subjectsMax = 100

/** Reads all pages of a list of the console, one after the other. */
export async function* pagesOf<Item>(
  context: CommandContext,
  options: CommonOptions,
  { path, query }: Pick<ConsoleRequest, 'path' | 'query'>,
): AsyncGenerator<readonly Item[]> {
  for (let after: string | undefined | null; after !== null; ) {
    const asked = { ...query, limit: pageRowsMax, after }
    const page: Page<Item> = await consoleAnswer(context, options, { path, query: asked })
    yield page.items
    after = page.next
  }
}

/**
 * Names the subjects to invoice: those that have a price list, their own or their plan's, those that were invoiced the
 * month before, and those that had a price list and left since the month began.
 */
async function billedSubjects(
  context: CommandContext,
  options: CommonOptions,
  month: string,
): Promise<readonly string[]> {
  const priced = new Set<string>()
  for await (const plans of pagesOf<NamedBody>(context, options, { path: '/v1/plans' })) {
    for (const { name, body } of plans) if (body.prices !== undefined) priced.add(name)
  }
  const billed = new Set<string>()
  for await (const subjects of pagesOf<NamedBody>(context, options, { path: '/v1/subjects' })) {
    const pays = ({ body }: NamedBody) => body.prices !== undefined || priced.has(body.plan ?? '')
    for (const { name } of subjects.filter(pays)) billed.add(name)
  }
  const before = { path: '/v1/invoices', query: { period: monthAfter(month, -1) } }
  for await (const invoices of pagesOf<ListedInvoice>(context, options, before)) {
    for (const { subject } of invoices) billed.add(subject)
  }
  const changed = { path: '/v1/invoices/subjects', query: { period: month } }
  const pages = pagesOf<{ readonly subject: string }>(context, options, changed)
  for await (const subjects of pages) for (const { subject } of subjects) billed.add(subject)
  return [...billed]
}

interface Remark {
  readonly path: string
  readonly message: string
}
interface Closed {
  readonly items: readonly ListedInvoice[]
  /** What stands in the way, by the subject as `path`. */
  readonly problems?: readonly Remark[]
  /** Of whom there is nothing to invoice, and why. */
  readonly nothing: readonly Remark[]
}

/** For as long a console that closes nothing is asked again: it restarts, or follows a change of the policy. */
const unavailableMsMax = 30_000

/** Repeats what the console answers with 503, which closed nothing: to close twice is to close once. */
async function untilAvailable<T>(ask: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + unavailableMsMax
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const isUnavailable = error instanceof WeirError && error.code === 'CONSOLE_UNAVAILABLE'
      if (!isUnavailable || performance.now() > untilMs) throw error
    }
    await delay(1_000)
  }
}

const invoiceTable = (items: readonly ListedInvoice[]) =>
  textTable([
    ['SUBJECT', 'MONTH', 'FROM', 'TO', 'CLOSED', 'ID'],
    ...items.map((one) => [printable(one.subject), one.period, one.from, one.to, one.closed_at, one.id]),
  ])

/** Closes a month of these subjects, or of all that `billedSubjects` names. Returns whether none stays open. */
export async function closeInvoices(
  period: string,
  options: CommonOptions & {
    readonly subject?: readonly string[]
    readonly grace: string
    readonly acceptGaps?: string
  },
  context: CommandContext,
): Promise<boolean> {
  const console = requireConsole(context.environment, options.data)
  const { grace, acceptGaps: accept_gaps } = options
  const all = options.subject ?? (await billedSubjects(context, options, period))
  const items: ListedInvoice[] = []
  const problems: Remark[] = []
  const nothing: Remark[] = []
  for (let at = 0; at < all.length; at += subjectsMax) {
    context.progress.tell(`${at} of ${all.length} subjects`, at / all.length)
    const body = { period, subjects: all.slice(at, at + subjectsMax), grace, accept_gaps }
    const request = { method: 'POST', path: '/v1/invoices', body, alsoAnswer: 409 } as const
    const ask = () => askConsole<Closed>(console, request)
    const { body: closed } = await untilAvailable(ask).catch((error: unknown) => {
      if (items.length > 0) context.report(`Closed before this failed:\n${invoiceTable(items)}`)
      throw error
    })
    items.push(...closed.items)
    problems.push(...(closed.problems ?? []))
    nothing.push(...closed.nothing)
  }
  if (options.json) context.print(JSON.stringify({ items, problems, nothing }))
  else if (items.length > 0) context.print(invoiceTable(items))
  else if (problems.length + nothing.length === 0) context.report('No subject has a price list.')
  if (!options.json) {
    for (const { path, message } of nothing) context.report(`${printable(path)} is not invoiced: ${message}`)
    for (const { path, message } of problems) context.report(`${printable(path)} stays open: ${message}`)
  }
  return problems.length === 0
}

/** Lists what was closed. */
export async function listInvoices(
  options: CommonOptions & { readonly period?: string; readonly subject?: string },
  context: CommandContext,
): Promise<void> {
  const { period, subject } = options
  const items: ListedInvoice[] = []
  const list = { path: '/v1/invoices', query: { period, subject } }
  for await (const page of pagesOf<ListedInvoice>(context, options, list)) items.push(...page)
  if (options.json) context.print(JSON.stringify(items))
  else if (items.length === 0) context.report('There are no invoices.')
  else context.print(invoiceTable(items))
}

/** A quote, of an invoice or of a preview: whole numbers are text in the one, and of `readExactly` in the other. */
type ShownQuote = Pick<Invoice['quote'], 'currency' | 'flat' | 'minimum_added' | 'total'> & {
  readonly lines: readonly {
    readonly name: string
    readonly measure: string
    readonly quantity: string | bigint
    readonly amount: string
  }[]
}

const grouped = (count: string | bigint) => BigInt(count).toLocaleString('en')

const quoteRows = ({ lines, flat, minimum_added, total, currency }: ShownQuote) => [
  ['LINE', 'QUANTITY', 'OF', `AMOUNT ${currency}`],
  ...lines.map(({ name, measure, quantity, amount }) => [name, grouped(quantity), measure, amount]),
  ...(/[1-9]/.test(flat) ? [['flat', '', '', flat]] : []),
  ...(/[1-9]/.test(minimum_added) ? [['up to the minimum', '', '', minimum_added]] : []),
  ['total', '', '', total],
]

/** Shows one invoice. */
export async function showInvoice(
  id: string,
  options: CommonOptions & { readonly csv: boolean },
  context: CommandContext,
): Promise<void> {
  const console = requireConsole(context.environment, options.data)
  const path = `/v1/invoices/${encodeURIComponent(id)}`
  const query = { format: options.csv ? 'csv' : 'json' }
  const { body, text } = await askConsole<Invoice>(console, { path, query })
  if (options.csv || options.json) return context.print(options.csv ? text.trimEnd() : text, 'exactly')
  const { subject, period, closed_at, quote, adjustments, totals, accepted_gaps } = body
  context.print(`${printable(subject)}  ${period.name}  ${period.from} to ${period.to}, closed ${closed_at}`)
  context.print(textTable(quoteRows(quote)))
  for (const { for_period, units, amount, currency } of adjustments) {
    context.print(`adjustment of the month from ${for_period}: ${grouped(units)} units, ${amount} ${currency}`)
  }
  for (const { currency, amount } of totals) context.print(`to pay  ${amount} ${currency}`)
  if (accepted_gaps !== null) {
    context.report(`closed although records are missing: ${printable(accepted_gaps.reason)}`)
    for (const words of accepted_gaps.missing) context.report(words)
  }
}

/** Reads JSON with its whole numbers as they are written, also beyond 2^53. */
const readExactly = (text: string) =>
  JSON.parse(text, (_, value, ...[context]: readonly { readonly source?: string }[]) =>
    typeof value === 'number' && Number.isInteger(value) ? BigInt(context?.source ?? value) : value,
  )

interface Preview {
  readonly subject: string
  readonly period: { readonly from: string; readonly to: string; readonly time_zone: string }
  readonly complete_through: string | null
  readonly quote: ShownQuote
  readonly forecast?: ShownQuote
}

/** Shows what the running month of a subject costs so far. */
export async function previewInvoice(subject: string, options: CommonOptions, context: CommandContext): Promise<void> {
  const console = requireConsole(context.environment, options.data)
  const request = { path: '/v1/invoices/preview', query: { subject } }
  const { text } = await askConsole<unknown>(console, request)
  if (options.json) return context.print(text, 'exactly')
  const { period, quote, forecast, complete_through }: Preview = readExactly(text)
  context.print(`${printable(subject)}  draft  ${period.from} to ${period.to} (${period.time_zone})`)
  context.print(textTable(quoteRows(quote)))
  if (forecast !== undefined) context.print(`at this pace  ${forecast.total} ${forecast.currency}`)
  context.report(`counted until ${complete_through ?? 'nothing is known yet'}`)
}
