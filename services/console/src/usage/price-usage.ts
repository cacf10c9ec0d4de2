import type { UsageQuery } from '@weir/api/query/usage-query.ts'
import type { UsageRow as ShownUsageRow } from '@weir/api/usage.ts'
import { periodBoundaries } from '@weir/core/calendar/calendar.ts'
import { formatAmount } from '@weir/core/prices/amount.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import { iso } from '@weir/core/prices/priced-month.ts'
import { type RouteUsage, totalOf } from '@weir/core/prices/quote.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { type Policy, pricesOf, type Subject } from '@weir/policy/policy.ts'
import type { PagePosition, UsageRow } from './usage-queries.ts'

/** The price of a row; null where the subject has no price list. */
export type PricedRow = Required<Pick<ShownUsageRow, 'amount' | 'currency'>>

type AskUsage = (reach: Reach, query: UsageQuery, position: PagePosition) => Promise<readonly UsageRow[]>

/** A query each, of milliseconds: three years of one calendar, or one month of 36. */
const monthsMax = 36
/** Subjects of a page times their routes, in memory at a time: some 20 MB. */
const rowsMax = 100_000

/** Subjects with the same months, and these. */
interface Calendar {
  readonly ids: string[]
  readonly months: readonly Period[]
}

/** Returns the whole months of a subject from one time to another. A text says why there are none. */
function monthsOf({ id, timeZone, anchor }: Subject, query: UsageQuery): readonly Period[] | string {
  const { fromMs, toMs, step } = query
  if (step === 'month' && (anchor !== 1 || timeZone !== query.timeZone)) {
    return `price=true with step=month needs months in the subject's time zone: the months of ${id} begin on day ${anchor} in ${timeZone}. Use step=total`
  }
  const months: Period[] = []
  for (let atMs = fromMs; atMs < toMs && months.length <= monthsMax; ) {
    const [startMs, nextMs] = periodBoundaries('month', timeZone, anchor, atMs)
    if (startMs !== atMs || nextMs > toMs) {
      return `price=true needs whole months in each subject's time zone: a month for ${id} runs from ${iso(startMs)} to ${iso(nextMs)}`
    }
    months.push({ fromMs: startMs, toMs: nextMs })
    atMs = nextMs
  }
  return months
}

/** Groups the subjects of a page by their months. A text says why they cannot be priced. */
function calendarsOf(subjects: readonly Subject[], query: UsageQuery): readonly Calendar[] | string {
  const calendars = new Map<string, Calendar>()
  let count = 0
  for (const subject of subjects) {
    const key = `${subject.timeZone} ${subject.anchor}`
    const known = calendars.get(key)
    if (known !== undefined) {
      known.ids.push(subject.id)
      continue
    }
    const months = monthsOf(subject, query)
    if (typeof months === 'string') return months
    count += months.length
    if (count > monthsMax) return `price=true supports at most ${monthsMax} months across all calendars of a page`
    calendars.set(key, { ids: [subject.id], months })
  }
  return [...calendars.values()]
}

const usageOf = ({ route = '', cost, allowed }: UsageRow): RouteUsage => {
  return { route, units: BigInt(cost), decisions: BigInt(allowed) }
}

/**
 * Prices the rows of a page by the price lists in force, each month by itself: rows are of one subject and one month,
 * or of all months of the span. A text says why they have no price.
 */
export async function priceRows<Row extends { readonly subject?: string; readonly ts?: string }>(
  { ask, policy, reach, query }: { ask: AskUsage; policy: Policy; reach: Reach; query: UsageQuery },
  rows: readonly Row[],
): Promise<readonly (Row & PricedRow)[] | string> {
  const lists = new Map<string, PriceList>()
  const priced: Subject[] = []
  for (const id of new Set(rows.map(({ subject = '' }) => subject))) {
    const subject = policy.subjects.get(id)
    const prices = subject === undefined ? undefined : pricesOf(policy, subject)
    if (subject === undefined || prices === undefined) continue
    lists.set(id, prices)
    priced.push(subject)
  }
  const calendars = calendarsOf(priced, query)
  if (typeof calendars === 'string') return calendars
  const keyOf = (id: string, fromMs: number) => `${query.step === 'month' ? fromMs : ''} ${id}`
  const totals = new Map<string, bigint>()
  for (const { ids, months } of calendars) {
    for (const month of months) {
      const whole = { ...query, ...month, except: {}, step: 'total', comparison: undefined } as const
      const asked: UsageQuery = { ...whole, only: { subject: ids } }
      const byRoute = { ...asked, by: ['subject', 'route'] as const, ranking: undefined, subjectPrefix: undefined }
      const found = await ask(reach, byRoute, { after: undefined, rowsMax: rowsMax + 1 })
      if (found.length > rowsMax) return `price=true supports at most ${rowsMax} subject and route pairs: lower limit`
      const used = Map.groupBy(found, ({ subject = '' }) => subject)
      for (const id of ids) {
        const prices = lists.get(id)
        if (prices === undefined) continue
        const key = keyOf(id, month.fromMs)
        totals.set(key, (totals.get(key) ?? 0n) + totalOf(prices, (used.get(id) ?? []).map(usageOf)))
      }
    }
  }
  return rows.map((row) => {
    const { subject = '', ts = '' } = row
    const [prices, total] = [lists.get(subject), totals.get(keyOf(subject, Date.parse(ts)))]
    if (prices === undefined || total === undefined) return { ...row, amount: null, currency: null }
    return { ...row, amount: formatAmount(total, prices.digits), currency: prices.currency }
  })
}
