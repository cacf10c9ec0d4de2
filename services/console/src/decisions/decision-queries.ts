import type { Explanation } from '@weir/api/decisions.ts'
import { type ClickHouseClient, decisionFormat, readRows } from '@weir/clickhouse/connect.ts'
import { withinReach, withinTime } from '@weir/clickhouse/within-reach.ts'
import { decisionColumns, type StoredDecision, storedColumns } from '@weir/contracts/decision-columns.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { type AlertReach, alertsWithin } from '../alerts/delivery-queries.ts'

/** A row of `weir.decisions`. Its numbers are safe integers: the contract of the record holds them to that. */
export type DecisionRow = StoredDecision

const sqlOf = (name: (typeof storedColumns)[number]) => {
  const { schema } = decisionColumns[name]
  const format = 'format' in schema ? schema.format : undefined
  if (name === 'ts') return `toInt64(toUnixTimestamp64Milli(d.${name})) AS ${name}_ms`
  return format === 'uuid' ? `toString(d.${name}) AS ${name}` : `d.${name} AS ${name}`
}
/** The columns of a `DecisionRow`, of `decisions` as `d`. */
export const decisionSelect = storedColumns
  .filter((name) => name !== 'v' && name !== 'journal' && name !== 'seq')
  .map(sqlOf)
  .join(', ')

/** A record is written within the deadline of its decision; clocks differ, and a coalesced one has its first time. */
const beforeMs = 60_000
const afterMs = 3_600_000

/**
 * Finds the decision of an id within a caller's reach, around the time that is in the id; undefined if there is none.
 */
export async function findDecision(
  client: ClickHouseClient,
  reach: Reach,
  { id, idMs }: { readonly id: string; readonly idMs: number },
): Promise<DecisionRow | undefined> {
  const within = withinReach(reach, 'd.subject', 'd.parents')
  const [row] = await readRows<DecisionRow>(
    client,
    `SELECT ${decisionSelect} FROM decisions AS d
     WHERE d.id = {id:UUID} AND ${within.sql}
       AND ${withinTime('d.ts')}
     LIMIT 1`,
    { id, from: idMs - beforeMs, to: idMs + afterMs, ...within.params },
    decisionFormat,
  )
  return row
}

/** What is known beyond a decision's own record. */
export interface DecisionRelated extends Pick<Explanation, 'corrections' | 'alerts'> {
  /** The upstream's answer; undefined for none, or none yet. */
  readonly outcome: NonNullable<Explanation['outcome_record']> | undefined
  /** Of a refusal during a block: the refusal that seems to have set it. */
  readonly blockedBy: { readonly id: string; readonly ts_ms: number } | undefined
}

/** More of these for one decision than a person reads. */
const relatedMax = 100
/** The longest block. */
const blockMsMax = 31 * 86_400_000

/** Reads what belongs to a decision that was found within the same reach. */
export async function readRelated(
  client: ClickHouseClient,
  within: AlertReach,
  { id, subject, ts_ms, count, reason, denied_by }: DecisionRow,
): Promise<DecisionRelated> {
  const alertsOf = alertsWithin(within)
  const params = { id, subject, ts: ts_ms, limit: denied_by }
  const read = <Row>(query: string, more = {}) => readRows<Row>(client, query, { ...params, ...more }, decisionFormat)
  const [outcomes, corrections, alerts, blocking] = await Promise.all([
    read<NonNullable<DecisionRelated['outcome']>>(
      `SELECT o.status AS status, o.duration_ms AS duration_ms, o.upstream AS upstream, o.error AS error FROM outcomes AS o
       WHERE o.subject = {subject:String} AND o.id = {id:UUID} AND o.ts >= fromUnixTimestamp64Milli({ts:Int64}) - INTERVAL 1 MINUTE
       LIMIT 1`,
    ),
    // A correction has the time of the decision that it corrects.
    read<DecisionRelated['corrections'][number]>(
      `SELECT toString(d.id) AS id, d.adjustment AS adjustment, d.count_adjustment AS count_adjustment, d.charged AS charged, d.units AS units, d.basis AS basis, d.dims AS dims
       FROM decisions AS d
       WHERE d.subject = {subject:String} AND d.ts = fromUnixTimestamp64Milli({ts:Int64}) AND d.corrects = {id:UUID}
       ORDER BY d.id LIMIT ${relatedMax}`,
    ),
    read<{ id: string }>(
      `SELECT DISTINCT toString(id) AS id FROM alerts
       WHERE subject = {subject:String} AND decision_id = {id:UUID} AND ${alertsOf.sql} LIMIT ${relatedMax}`,
      alertsOf.params,
    ),
    reason === 'blocked'
      ? read<NonNullable<DecisionRelated['blockedBy']>>(
          `SELECT toString(d.id) AS id, toInt64(toUnixTimestamp64Milli(d.ts)) AS ts_ms FROM decisions AS d
           WHERE d.subject = {subject:String} AND d.ts <= fromUnixTimestamp64Milli({ts:Int64})
             AND d.ts > fromUnixTimestamp64Milli({ts:Int64} - ${blockMsMax})
             AND d.denied_by = {limit:String} AND d.reason = 'limit' AND d.outcome = 'deny'
           ORDER BY d.ts DESC LIMIT 1`,
        )
      : [],
  ])
  // Of several under one id nobody knows which is meant.
  const outcome = count === 1 ? outcomes[0] : undefined
  return { outcome, corrections, alerts: alerts.map((one) => one.id), blockedBy: blocking[0] }
}
