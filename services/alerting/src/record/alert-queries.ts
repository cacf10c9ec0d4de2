import { type ClickHouseClient, countsAsNumbers, readRows } from '@weir/clickhouse/connect.ts'
import { inTurn } from '@weir/clickhouse/delivery-order.ts'
import type { DeliveryJob } from '../types.ts'

/** What rows have instead of an id. */
export const noAlert = '00000000-0000-0000-0000-000000000000'

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** A row of `weir.alerts`; `time` as `YYYY-MM-DD hh:mm:ss.SSS` UTC, `data` as JSON. */
export type AlertRow = Readonly<Record<'id' | 'type' | 'subject' | 'time' | 'data', string>>

/** Returns ids as a part of the query's text: a thousand are too many for its URL. */
function listOf(ids: readonly string[]): string {
  const wrong = ids.find((id) => !uuidForm.test(id))
  if (wrong !== undefined) throw new Error(`an alert cannot have the id ${JSON.stringify(wrong)}`)
  return ids.map((id) => `'${id}'`).join(', ')
}

/** Returns the ids of those alerts that were raised. */
export async function readRaisedIds(
  client: ClickHouseClient,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const query = `SELECT DISTINCT toString(id) AS id FROM alerts WHERE id IN (${listOf(ids)}) AND state = 'raised'`
  const rows = await readRows<{ id: string }>(client, query, {}, { abort_signal: signal })
  return rows.map(({ id }) => id)
}

/** Reads alerts by their ids, each once; unknown ids are left out. */
export async function readAlertsById(client: ClickHouseClient, ids: readonly string[]): Promise<AlertRow[]> {
  if (ids.length === 0) return []
  return readRows<AlertRow>(
    client,
    `SELECT toString(id) AS id, type, subject, toString(time) AS time, data FROM alerts
      WHERE id IN (${listOf(ids)}) LIMIT 1 BY id`,
  )
}

/** An alert is resolved up to this long after its period's end: longer than servers are down. */
const resolvedWithinDays = 7
/** The longest period, a month whose clocks change, and the above. */
const startedWithinDays = 32 + resolvedWithinDays

/**
 * Returns the ids of threshold alerts that nothing has resolved, `limit` of them behind `after`, in ClickHouse's order.
 * `isEnded`: those whose period or window is over, else the others. Reads the alerts of some weeks, a column or two.
 */
export async function readOpenAlertIds(
  client: ClickHouseClient,
  of: { readonly isEnded: boolean; readonly nowMs: number; readonly after: string; readonly limit: number },
): Promise<string[]> {
  const { isEnded, nowMs, after, limit } = of
  const rows = await readRows<{ id: string }>(
    client,
    `SELECT toString(incident) AS id FROM alerts
      WHERE incident > {after:UUID} AND state = 'raised'
        AND period_start > toDateTime({now:UInt32}) - INTERVAL {startDays:UInt16} DAY
        AND period_end > toDateTime({now:UInt32}) - INTERVAL {days:UInt16} DAY
        AND (period_end <= toDateTime({now:UInt32})) = {isEnded:Bool}
      GROUP BY incident HAVING countIf(type = 'weir.quota.resolved') = 0
      ORDER BY incident LIMIT {limit:UInt32}`,
    {
      after: after === '' ? noAlert : after,
      now: Math.floor(nowMs / 1_000),
      startDays: startedWithinDays,
      days: resolvedWithinDays,
      isEnded,
      limit,
    },
  )
  return rows.map(({ id }) => id)
}

/**
 * A delivery without an end in ClickHouse: what its job has, but for the alert. Where the next try is not known, it is
 * due when it was queued.
 */
export interface UnfinishedRow extends Pick<DeliveryJob, 'endpoint' | 'attempts' | 'dueMs' | 'requestedMs'> {
  readonly alertId: string
  /** When it, or the last request, began. */
  readonly beganMs: number
}

/**
 * Reads `limit` deliveries of the last days whose last row is no end, the oldest first, behind `after`. Deliveries
 * whose last row came within `settleSeconds` are left out: their next row may be on its way.
 */
export function readUnfinished(
  client: ClickHouseClient,
  options: {
    readonly days: number
    readonly settleSeconds: number
    readonly limit: number
    readonly after?: UnfinishedRow | undefined
  },
): Promise<UnfinishedRow[]> {
  const { days, settleSeconds, limit, after } = options
  return readRows<UnfinishedRow>(
    client,
    `SELECT toString(d.alert_id) AS alertId, endpoint, argMax(attempt, ${inTurn}) AS attempts,
        toInt64(toUnixTimestamp64Milli(ifNull(argMax(next_try, ${inTurn}), max(at)))) AS dueMs,
        toInt64(maxIf(toUnixTimestamp64Milli(at), outcome = 'requested')) AS requestedMs,
        if(requestedMs = 0, toInt64(min(toUnixTimestamp64Milli(at))), requestedMs) AS beganMs
      FROM deliveries AS d
      WHERE at > now() - INTERVAL {days:UInt16} DAY
      GROUP BY d.alert_id, endpoint
      HAVING argMax(outcome, ${inTurn}) IN ('queued', 'requested', 'failed')
        AND max(recorded_at) < now() - INTERVAL {settle:UInt16} SECOND
        AND (beganMs, alertId, endpoint) > ({ms:Int64}, {id:String}, {endpoint:String})
      ORDER BY beganMs, alertId, endpoint
      LIMIT {limit:UInt32}`,
    {
      days,
      settle: settleSeconds,
      limit,
      ms: after?.beganMs ?? 0,
      id: after?.alertId ?? '',
      endpoint: after?.endpoint ?? '',
    },
    { clickhouse_settings: countsAsNumbers },
  )
}
