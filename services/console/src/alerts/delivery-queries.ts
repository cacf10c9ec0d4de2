import type { Alert } from '@weir/api/alerts.ts'
import { type ClickHouseClient, readRows } from '@weir/clickhouse/connect.ts'
import { inTurn } from '@weir/clickhouse/delivery-order.ts'
import { pageMsMax, questionBounds, throwBound } from '@weir/clickhouse/question-bounds.ts'
import { withinReach, withinTime } from '@weir/clickhouse/within-reach.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** Selects alerts or deliveries; times in milliseconds since the epoch. */
export interface AlertFilter {
  readonly fromMs: number
  readonly toMs: number
  readonly subject?: string | undefined
  readonly type?: string | undefined
  /** Only deliveries to this endpoint, of a contact to all its addresses or to one. */
  readonly endpoint?: string | undefined
  /** Only alerts whose last outcome at one such endpoint at least is one of these; any if empty. */
  readonly outcome?: readonly string[] | undefined
}

/** An alert as it is stored, with its content as JSON. */
export interface StoredAlert extends Omit<Alert, 'data' | 'summary' | 'attempts_max' | 'deliveries'> {
  readonly data: string
}

/** An alert with the last outcome at each endpoint. */
export interface ListedAlert extends StoredAlert {
  /** `[endpoint, last outcome]`. */
  readonly deliveries: readonly (readonly [string, string])[]
}

const rfc3339 = (column: string) => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ', 'UTC')`
/** `%f` has six digits, whatever the column has; RFC 3339 takes any number. */
const alertColumns = `toString(id) AS id, type, subject, ${rfc3339('a.time')} AS time, state, data`

const atEndpoint = `({endpoint:String} = '' OR endpoint = {endpoint:String}
          OR startsWith(endpoint, concat({endpoint:String}, '/')))`

/** Returns the parameters of a filter; an empty text matches any. */
const parametersOf = ({ fromMs, toMs, subject = '', type = '', endpoint = '', outcome = [] }: AlertFilter) => ({
  from: fromMs,
  to: toMs,
  subject,
  type,
  endpoint,
  outcome,
})

/** Which alerts a caller may see. */
export interface AlertReach {
  readonly reach: Reach
  /** Limits whose alerts are hidden from callers who are limited to subjects. */
  readonly hiddenLimits: readonly string[]
}

/**
 * Alerts about endpoints have the name of the endpoint as subject, and are the operator's alone. The column of the
 * content is parsed only for callers who are limited.
 */
export function alertsWithin({ reach, hiddenLimits }: AlertReach) {
  const { sql, params } = withinReach(reach, 'subject')
  if (!reach.isOwn) return { sql, params }
  const own = `${sql} AND NOT startsWith(type, 'weir.endpoint.')`
  const seen = "JSONExtractString(data, 'limit') NOT IN {hidden:Array(String)}"
  return { sql: `${own} AND ${seen}`, params: { ...params, hidden: hiddenLimits } }
}

/**
 * Reads `limit` alerts, the newest first, after the one that `after` names by its time and id. Callers who are limited
 * to subjects get no deliveries. Rejects with `QuestionBoundMet` where it costs too much.
 */
export function listAlerts(
  client: ClickHouseClient,
  within: AlertReach,
  filter: AlertFilter,
  {
    limit,
    after,
  }: { readonly limit: number; readonly after?: { readonly timeMs: number; readonly id: string } | undefined },
): Promise<ListedAlert[]> {
  const { sql, params } = alertsWithin(within)
  const lastOutcomes = `SELECT alert_id, endpoint, argMax(outcome, ${inTurn}) AS last FROM deliveries
          WHERE at >= fromUnixTimestamp64Milli({from:Int64}) GROUP BY alert_id, endpoint`
  const deliveries = `LEFT JOIN (
        SELECT alert_id, groupArray((endpoint, last)) AS deliveries FROM (${lastOutcomes} ORDER BY endpoint)
        GROUP BY alert_id
      ) AS d ON d.alert_id = a.id`
  const { outcome = [], endpoint = '' } = filter
  const delivered = `AND id IN (SELECT alert_id FROM (${lastOutcomes})
            WHERE ${atEndpoint} AND (empty({outcome:Array(String)}) OR last IN {outcome:Array(String)}))`
  const { isOwn } = within.reach
  return readRows<ListedAlert>(
    client,
    `SELECT ${alertColumns}, ${isOwn ? '[] AS deliveries' : 'deliveries'} FROM (
        SELECT id, type, subject, time, state, data FROM alerts
        WHERE ${sql} AND ${withinTime('time')} AND ({subject:String} = '' OR subject = {subject:String})
          AND ({type:String} = '' OR type = {type:String}) ${outcome.length === 0 && endpoint === '' ? '' : delivered}
          AND ({afterMs:Int64} = 0 OR (time, toString(id)) < (fromUnixTimestamp64Milli({afterMs:Int64}), {afterId:String}))
        ORDER BY time DESC, toString(id) DESC LIMIT 1 BY id LIMIT {limit:UInt32}
      ) AS a
      ${isOwn ? '' : deliveries}
      ORDER BY a.time DESC, toString(a.id) DESC`,
    { ...params, ...parametersOf(filter), limit, afterMs: after?.timeMs ?? 0, afterId: after?.id ?? '' },
    { clickhouse_settings: questionBounds(pageMsMax) },
  ).catch(throwBound)
}

/** Reads one alert with every step of its deliveries; undefined if no alert within reach has this id. */
export async function findAlert(
  client: ClickHouseClient,
  within: AlertReach,
  id: string,
): Promise<{ readonly alert: StoredAlert; readonly deliveries: Alert['deliveries'] } | undefined> {
  const { sql, params } = alertsWithin(within)
  const [alert] = await readRows<StoredAlert>(
    client,
    `SELECT ${alertColumns} FROM alerts AS a WHERE a.id = {id:UUID} AND ${sql} LIMIT 1`,
    { ...params, id },
  )
  if (alert === undefined) return undefined
  const deliveries = await readRows<Alert['deliveries'][number]>(
    client,
    `SELECT endpoint, attempt, ${rfc3339('d.at')} AS at, outcome, status, ms, error,
        if(isNull(d.next_try), NULL, ${rfc3339('assumeNotNull(d.next_try)')}) AS next_try, answer
      FROM deliveries AS d FINAL WHERE d.alert_id = {id:UUID} ORDER BY d.at, attempt, endpoint`,
    { id },
  )
  return { alert, deliveries }
}

/** A delivery that ended although the endpoint did not accept the alert. */
export type FailedDelivery = Pick<DeliveryV1, 'alert_id' | 'alert_type' | 'subject' | 'endpoint'>

/** Reads the deliveries that were given up or dropped, and whose last step was in that time, the oldest first. */
export function listFailedDeliveries(
  client: ClickHouseClient,
  filter: AlertFilter,
  limit: number,
): Promise<FailedDelivery[]> {
  return readRows<FailedDelivery>(
    client,
    `SELECT toString(alert_id) AS alert_id, any(alert_type) AS alert_type, any(subject) AS subject, endpoint
      FROM deliveries AS d
      WHERE d.at >= fromUnixTimestamp64Milli({from:Int64}) AND ({subject:String} = '' OR d.subject = {subject:String})
        AND ({type:String} = '' OR d.alert_type = {type:String}) AND ${atEndpoint}
      GROUP BY d.alert_id, d.endpoint
      HAVING argMax(outcome, ${inTurn}) IN ('given_up', 'dropped') AND max(at) < fromUnixTimestamp64Milli({to:Int64})
      ORDER BY max(at), alert_id, endpoint LIMIT {limit:UInt32}`,
    { ...parametersOf(filter), limit },
  )
}
