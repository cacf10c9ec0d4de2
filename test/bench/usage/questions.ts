import type { Tables } from '../../support/servers/tables.ts'
import type { Year } from './fill-year.ts'

/** What people ask, over the API and, for comparison, of the raw rows; `at` counts the times it is asked. */
export interface Question {
  readonly label: string
  path(at: number): string
  readonly raw?: (at: number) => string
}

const zone = 'Asia/Kathmandu'
const isoDay = (ms: number) => new Date(ms).toISOString().slice(0, 10)
/** So that an id is not in what the one before it has just read. */
const idsAsked = 32

/** The last calendar month that is whole. */
function lastMonth({ toMs }: Year): readonly [string, string] {
  const end = new Date(toMs)
  const start = (back: number) => isoDay(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - back, 1))
  return [start(1), start(0)]
}

const sums = "sum(count) AS n, sumIf(toInt64(cost * count) + adjustment, outcome = 'allow') AS units"

/** Returns the questions that people ask of a year of decisions. */
export async function questionsOf(tables: Tables, year: Year): Promise<readonly Question[]> {
  const [from, to] = lastMonth(year)
  const within = (timeZone: string) =>
    `ts >= toDateTime64('${from}', 3, '${timeZone}') AND ts < toDateTime64('${to}', 3, '${timeZone}')`
  const month = (label: string, subject: string): Question => ({
    label,
    path: () => `/v1/usage?subject=${subject}&from=${from}&to=${to}&step=day&time_zone=${zone}`,
    raw: () => `SELECT toStartOfDay(ts, '${zone}') AS day, ${sums} FROM weir.decisions
      WHERE subject = '${subject}' AND ${within(zone)} GROUP BY day`,
  })
  const ids = await tables.rows<{ id: string }>(
    `SELECT toString(id) AS id FROM weir.decisions WHERE ${within('UTC')} AND count > 0 AND cityHash64(id) % 997 = 0 LIMIT ${idsAsked}`,
  )
  const idAt = (at: number) => ids[at % ids.length]?.id ?? ''
  return [
    month('a month of a middling subject by day, in its zone (target p50 < 50 ms)', 'customer-3125'),
    month('a month of the largest subject by day, in its zone', 'customer-0'),
    {
      label: 'the top 20 subjects of a month (target < 300 ms)',
      path: () => `/v1/usage?from=${from}&to=${to}&step=total&by=subject&top=20`,
      raw: () =>
        `SELECT subject, ${sums} FROM weir.decisions WHERE ${within('UTC')} GROUP BY subject ORDER BY units DESC LIMIT 20`,
    },
    {
      label: 'totals by hour of a year (target < 200 ms)',
      path: () => `/v1/usage?from=${isoDay(year.fromMs)}&to=${isoDay(year.toMs)}&step=hour&limit=10000`,
      raw: () => `SELECT toStartOfHour(ts) AS hour, ${sums} FROM weir.decisions GROUP BY hour`,
    },
    {
      label: 'an id alone, explained (target < 200 ms)',
      path: (at) => `/v1/decisions/${idAt(at)}`,
      raw: (at) => `SELECT * FROM weir.decisions WHERE id = '${idAt(at)}' SETTINGS use_skip_indexes = 0`,
    },
  ]
}

/** Rows that an export may have. */
const exportedMax = 10_000_000

/** A question whose answer, as CSV, has as many rows as an export may have, or nearly so. */
export function exportOf({ rows, fromMs, toMs }: Year): string {
  const share = Math.min(1, exportedMax / rows)
  const from = new Date(toMs - (toMs - fromMs) * share).toISOString()
  const to = new Date(toMs).toISOString()
  return `/v1/usage?from=${from}&to=${to}&step=quarter_hour&by=subject,key_id,route,outcome&format=csv`
}
