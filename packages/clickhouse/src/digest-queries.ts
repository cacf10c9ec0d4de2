import type { AlertRow } from './alert-queries.ts'
import { type ClickHouseClient, readRows } from './connect.ts'

/** Less than the client waits: a query that is repeated does not run twice. */
const bounded = { clickhouse_settings: { max_execution_time: 15 } }

/** A span of time, half open, in milliseconds since the epoch. */
export interface DigestSpan {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * Alerts that were raised and sent within a span. Their partition is that of their period: two months long at most,
 * where the day on which months begin has changed.
 */
const sentWithin = `a.time >= fromUnixTimestamp64Milli({from:Int64}) AND a.time < fromUnixTimestamp64Milli({to:Int64})
  AND a.period_start >= toDateTime(fromUnixTimestamp64Milli({from:Int64})) - INTERVAL 62 DAY
  AND a.state = 'raised' AND a.silence = '' AND NOT startsWith(a.type, 'weir.endpoint.') AND a.type != 'weir.alerts.digest'`

const parametersOf = ({ fromMs, toMs }: DigestSpan) => ({ from: fromMs, to: toMs })

/** Reads the first `limit` subjects after `after` that have alerts in a span, by name. */
export async function readAlertedSubjects(
  client: ClickHouseClient,
  span: DigestSpan,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly string[]> {
  const rows = await readRows<{ subject: string }>(
    client,
    `SELECT DISTINCT a.subject AS subject FROM alerts AS a WHERE ${sentWithin} AND a.subject > {after:String}
      ORDER BY subject LIMIT {limit:UInt32}`,
    { ...parametersOf(span), after, limit },
    bounded,
  )
  return rows.map(({ subject }) => subject)
}

/** Reads the first `each` alerts of each of these subjects in a span, in the order in which they were raised. */
export function readAlertsWithin(
  client: ClickHouseClient,
  span: DigestSpan,
  subjects: readonly string[],
  each: number,
): Promise<AlertRow[]> {
  return readRows<AlertRow>(
    client,
    `SELECT * FROM (
        SELECT toString(a.id) AS id, a.type AS type, a.subject AS subject, toString(a.time) AS time, a.data AS data
        FROM alerts AS a WHERE ${sentWithin} AND a.subject IN {subjects:Array(String)} LIMIT 1 BY a.id
      ) ORDER BY subject, time, id LIMIT {each:UInt32} BY subject`,
    { ...parametersOf(span), subjects, each },
    bounded,
  )
}
