import { hash } from 'node:crypto'
import type { InvoiceFilter, InvoiceSummary, StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { monthNamed } from '@weir/core/calendar/calendar.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import {
  type AcceptedGaps,
  type BilledPeriod,
  type CutoffPlace,
  type Invoice,
  invoicedPeriods,
  invoiceIdOf,
  makeInvoice,
} from '@weir/core/prices/invoice.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import type { RouteUsage } from '@weir/core/prices/quote.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { canonicalJson } from '@weir/policy/entities.ts'
import type { Subject } from '@weir/policy/policy.ts'

/** Raw rows are kept for 13 months, 393 days at least. A period that has lost some of them is never priced again. */
const adjustedForMs = 390 * 86_400_000

/** What closing reads and writes in ClickHouse. Each rejects when it does not answer. */
export interface Ledger {
  readonly askCompleteness: () => Promise<Completeness>
  readonly askGaps: (period: Period) => Promise<readonly string[]>
  readonly readCutoff: () => Promise<readonly CutoffPlace[]>
  readonly askUsageUpTo: (
    subject: string,
    period: Period,
    cutoff: readonly CutoffPlace[],
  ) => Promise<readonly RouteUsage[]>
  readonly readInvoice: (reach: Reach, id: string) => Promise<StoredInvoice | undefined>
  readonly readInvoicesOf: (subject: string) => Promise<readonly StoredInvoice[]>
  /** In the order of subjects and periods. */
  readonly listInvoices: (reach: Reach, filter: InvoiceFilter) => Promise<readonly InvoiceSummary[]>
  /** Stores it unless there is one of its id; returns the one that is stored. */
  readonly storeInvoice: (invoice: StoredInvoice) => Promise<StoredInvoice>
}

/** A request to close a month of one subject. */
export interface Closing {
  readonly subject: Subject
  readonly prices: PriceList
  /** `2026-11`. */
  readonly month: string
  /** How long records may be late. */
  readonly graceMs: number
  /** Why the month is closed although records are missing; undefined: it is not. */
  readonly acceptGaps: string | undefined
}

type Closed =
  | { readonly kind: 'closed'; readonly invoice: StoredInvoice }
  /** The month cannot be closed yet, or not at all; everything that stands in its way. */
  | { readonly kind: 'open'; readonly because: readonly string[] }

/**
 * Closes a month: reads one cut-off, prices what is counted up to it, and stores the invoice. In this order:
 *
 * 1. An invoice that is there is returned as it is: closing twice is closing once.
 * 2. Completeness is read before the cut-off: what it promises is among the records that the cut-off counts.
 * 3. The invoice is made of the records up to the cut-off, and of all earlier invoices.
 * 4. It is stored under an id that follows from subject and month. Of two closings at a time the first one stays, and
 *    both are answered with it. A crash before this step leaves nothing.
 */
export async function closeMonth(ledger: Ledger, closing: Closing, nowMs: number): Promise<Closed> {
  const { subject, prices, month, graceMs, acceptGaps } = closing
  const id = invoiceIdOf(subject.id, month)
  const known = await ledger.readInvoice(Reach.everybody, id)
  if (known !== undefined) return { kind: 'closed', invoice: known }
  const earlier = (await ledger.readInvoicesOf(subject.id)).map(({ document }): Invoice => JSON.parse(document))
  const found = periodOf(subject, month, earlier)
  if (typeof found === 'string') return { kind: 'open', because: [found] }
  const { because, missing } = await obstacles(ledger, found, graceMs, nowMs)
  if (because.length > 0) return { kind: 'open', because }
  if (missing.length > 0 && acceptGaps === undefined) return { kind: 'open', because: missing }
  const cutoff = await ledger.readCutoff()
  const usageOf = (period: Period) => ledger.askUsageUpTo(subject.id, period, cutoff)
  const invoice = makeInvoice({
    ...{ id, subject: subject.id, period: billed(subject, month, found), closedAt: iso(nowMs), cutoff, prices },
    acceptedGaps: accepted(acceptGaps, missing),
    usage: await usageOf(found),
    earlier: await repriced(earlier, usageOf, nowMs),
  })
  const document = canonicalJson(JSON.parse(JSON.stringify(invoice)))
  const { from, to } = invoice.period
  const stored = { id, subject: subject.id, period: month, from, to, closed_at: iso(nowMs) }
  const sha256 = hash('sha256', document, 'hex')
  return { kind: 'closed', invoice: await ledger.storeInvoice({ ...stored, sha256, document }) }
}

const iso = (ms: number) => new Date(ms).toISOString()

/** The month's period: it begins where the last one ended, also after a change of zone or anchor. */
function periodOf({ timeZone, anchor }: Subject, month: string, earlier: readonly Invoice[]): Period | string {
  const calendar = monthNamed(month, timeZone, anchor)
  if (calendar === undefined) return `${month} is no month such as 2026-11`
  const later = earlier.find(({ period }) => period.name > month)
  if (later !== undefined) return `the later month ${later.period.name} is closed already`
  const last = earlier.findLast(({ period }) => period.name === monthBefore(month))
  const [fromMs, toMs] = [last === undefined ? calendar[0] : Date.parse(last.period.to), calendar[1]]
  return fromMs < toMs ? { fromMs, toMs } : `the month ended at ${iso(toMs)}, and the one before only at ${iso(fromMs)}`
}

function monthBefore(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number)
  return new Date(Date.UTC(year, number - 2, 1)).toISOString().slice(0, 7)
}

const billed = ({ timeZone, anchor }: Subject, name: string, { fromMs, toMs }: Period): BilledPeriod => {
  return { name, from: iso(fromMs), to: iso(toMs), time_zone: timeZone, anchor: String(anchor) }
}

/** What keeps the month open whatever the caller accepts, and what is missing of it. */
async function obstacles(ledger: Ledger, period: Period, graceMs: number, nowMs: number) {
  const { completeThroughMs, silent } = await ledger.askCompleteness()
  const gaps = await ledger.askGaps(period)
  const because: string[] = []
  const endMs = period.toMs + graceMs
  if (nowMs < endMs)
    because.push(`the month ends at ${iso(period.toMs)}; with the grace it is closed from ${iso(endMs)}`)
  if (completeThroughMs === undefined || completeThroughMs < period.toMs) {
    const through = completeThroughMs === undefined ? 'not known' : iso(completeThroughMs)
    because.push(`complete_through is ${through}, before the end of the month at ${iso(period.toMs)}`)
  }
  const quiet = silent.map(({ journal, sinceMs }) => `the journal ${journal} is silent since ${iso(sinceMs)}`)
  return { because, missing: [...quiet, ...gaps] }
}

const accepted = (reason: string | undefined, missing: readonly string[]): AcceptedGaps | null =>
  reason === undefined || missing.length === 0 ? null : { reason, missing }

/** Closed periods of which raw rows are kept, with what is counted of them by now. One query each. */
async function repriced(
  earlier: readonly Invoice[],
  usageOf: (period: Period) => Promise<readonly RouteUsage[]>,
  nowMs: number,
) {
  const all = invoicedPeriods(earlier)
  const recent = earlier.filter(({ period }) => Date.parse(period.from) > nowMs - adjustedForMs)
  const usages: { readonly invoiced: (typeof all)[number]; readonly usage: readonly RouteUsage[] }[] = []
  for (const { period } of recent) {
    const invoiced = all.find((one) => one.period === period.from)
    if (invoiced === undefined) continue
    const usage = await usageOf({ fromMs: Date.parse(period.from), toMs: Date.parse(period.to) })
    usages.push({ invoiced, usage })
  }
  return usages
}
