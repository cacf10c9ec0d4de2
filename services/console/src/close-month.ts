import { hash } from 'node:crypto'
import type { InvoiceFilter, InvoiceSummary, StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { billed, iso, periodToClose } from '@weir/core/prices/billed-period.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import {
  type AcceptedGaps,
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
import { type PolicyPast, priceListIn } from './billed-subject.ts'

/** Raw rows are kept for 13 months, 393 days at least. A period that may have lost some of them is never priced. */
const adjustedForMs = 390 * 86_400_000

/** What closing reads and writes in ClickHouse. Each rejects when it does not answer. */
export interface Ledger extends PolicyPast {
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
  /** Subjects that had a price list, and changed since then, by name: also those that are in the policy no more. */
  readonly readPricedSubjects: (asked: {
    readonly sinceMs: number
    readonly after: string
    readonly rowsMax: number
  }) => Promise<readonly string[]>
  /** Stores it unless there is one of its id; returns the one that is stored. */
  readonly storeInvoice: (invoice: StoredInvoice) => Promise<StoredInvoice>
}

/** A request to close a month of one subject. */
export interface Closing {
  readonly subject: Subject
  /** Its price list now, or when it was deleted: it counts where the history does not go back to the month. */
  readonly prices: PriceList | undefined
  /** `2026-11`. */
  readonly month: string
  /** How long records may be late. */
  readonly graceMs: number
  /** Why the month is closed although records are missing; undefined: it is not. */
  readonly acceptGaps: string | undefined
  /** When it was deleted from the policy; undefined while it is in it. */
  readonly deletedAtMs?: number | undefined
}

/** What the closings of one request see, each read when it is first needed and for all subjects together. */
export interface ClosingMoment {
  readonly completeness: () => Promise<Completeness>
  readonly cutoff: () => Promise<readonly CutoffPlace[]>
}

/** Opens the moment of a request: every partition of the table is read for its cut-off, so once. */
export function openMoment({ askCompleteness, readCutoff }: Ledger): ClosingMoment {
  let completeness: Promise<Completeness> | undefined
  let cutoff: Promise<readonly CutoffPlace[]> | undefined
  return {
    completeness() {
      completeness ??= askCompleteness()
      return completeness
    },
    cutoff() {
      cutoff ??= readCutoff()
      return cutoff
    },
  }
}

type Closed =
  | { readonly kind: 'closed'; readonly invoice: StoredInvoice }
  /** The month cannot be closed yet, or not at all; everything that stands in its way. */
  | { readonly kind: 'open'; readonly because: readonly string[] }
  /** There is nothing to close. */
  | { readonly kind: 'nothing'; readonly because: string }

/**
 * Closes a month: prices what is counted up to the moment's cut-off, and stores the invoice. In this order:
 *
 * 1. An invoice that is there is returned as it is: closing twice is closing once.
 * 2. Completeness is read before the cut-off: what it promises is among the records that the cut-off counts.
 * 3. The price list is the last one that the subject had in the month, whatever the policy says by now.
 * 4. The invoice is made of the records up to the cut-off, and of all earlier invoices.
 * 5. It is stored under an id that follows from subject and month. Of two closings at a time the first one stays, and
 *    both are answered with it. A crash before this step leaves nothing.
 */
export async function closeMonth(
  ledger: Ledger,
  moment: ClosingMoment,
  closing: Closing,
  nowMs: number,
): Promise<Closed> {
  const { subject, prices: listNow, month, graceMs, acceptGaps, deletedAtMs = Number.POSITIVE_INFINITY } = closing
  const id = invoiceIdOf(subject.id, month)
  const known = await ledger.readInvoice(Reach.everybody, id)
  if (known !== undefined) return { kind: 'closed', invoice: known }
  const earlier = (await ledger.readInvoicesOf(subject.id)).map(({ document }): Invoice => JSON.parse(document))
  const found = periodToClose(subject, month, earlier)
  if (typeof found === 'string') return { kind: 'open', because: [found] }
  if (found.fromMs >= deletedAtMs) {
    return nothing(`the subject was deleted at ${iso(deletedAtMs)}, before the month began`, earlier)
  }
  const { completeThroughMs, silent } = await moment.completeness()
  const gaps = await ledger.askGaps(found)
  const { because, missing } = obstacles({ period: found, graceMs, nowMs, completeThroughMs, silent, gaps })
  if (because.length > 0) return { kind: 'open', because }
  const listThen = await priceListIn(ledger, subject.id, found)
  const prices = listThen === 'unknown' ? listNow : listThen
  if (prices === undefined) return nothing('the subject had no price list in the month', earlier)
  if (listThen === 'unknown') missing.push(unknownList(prices))
  if (missing.length > 0 && acceptGaps === undefined) return { kind: 'open', because: missing }
  const cutoff = await moment.cutoff()
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

interface Known extends Completeness {
  readonly period: Period
  readonly graceMs: number
  readonly nowMs: number
  readonly gaps: readonly string[]
}

function nothing(why: string, earlier: readonly Invoice[]): Closed {
  const late = earlier.length === 0 ? '' : '; what came late for its earlier months is not invoiced'
  return { kind: 'nothing', because: `${why}${late}` }
}

const unknownList = ({ name }: PriceList) =>
  `the policy's history does not go back to the end of the month: it would be priced by the list ${name} of now`

const isKept = (fromMs: number, nowMs: number) => fromMs > nowMs - adjustedForMs

/** What keeps the month open whatever the caller accepts, and what is missing of it. */
function obstacles({ period, graceMs, nowMs, completeThroughMs, silent, gaps }: Known) {
  const because: string[] = []
  if (!isKept(period.fromMs, nowMs)) {
    because.push(
      `the month began at ${iso(period.fromMs)}, more than 390 days ago, and raw rows of it may be gone; ask GET /v1/usage with price=true for what it cost`,
    )
  }
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
  const recent = earlier.filter(({ period }) => isKept(Date.parse(period.from), nowMs))
  const usages: { readonly invoiced: (typeof all)[number]; readonly usage: readonly RouteUsage[] }[] = []
  for (const { period } of recent) {
    const invoiced = all.find((one) => one.period === period.from)
    if (invoiced === undefined) continue
    const usage = await usageOf({ fromMs: Date.parse(period.from), toMs: Date.parse(period.to) })
    usages.push({ invoiced, usage })
  }
  return usages
}
