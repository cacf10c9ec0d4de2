import { type ClickHouseClient, decisionFormat, readRows } from '@weir/clickhouse/connect.ts'
import { withinReach } from '@weir/clickhouse/within-reach.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** Which blocks are asked for. */
export interface BlockQuery {
  /** Limits that block at all, and of these the ones whose counts are of one subject each. */
  readonly limits: readonly string[]
  readonly ofOneSubject: readonly string[]
  /** The longest block: a refusal from before that blocks no caller any more. */
  readonly longestMs: number
  readonly nowMs: number
  readonly subject?: string | undefined
  /** The forms in which records may have the address; absent for any. */
  readonly addresses?: readonly string[] | undefined
  readonly rowsMax: number
}

/** A value that a limit counts by, and that was blocked at the last refusal, as records say it. */
export interface BlockRow {
  readonly name: string
  /** The subject that is counted; empty where subjects share the count. */
  readonly subject: string
  readonly by: Readonly<Record<string, string>>
  /** The refusal that seems to have set the block, and its time. */
  readonly decision: string
  readonly since_ms: number
  /** Requests that were refused since then. */
  readonly refusals: number
}

/** Clocks of processes differ, and Redis has the last word. */
const clocksMs = 60_000
/** The refusal that sets a block is repeated from memory, with its own reason, for up to a second. */
const repeatedMs = 1_000
/** Less than the console waits, so that no query runs on for nobody. */
const secondsMax = 8

/**
 * Reads what limits seem to have blocked, the newest first: a limit that blocks has nothing left, and all of it is free
 * again only once the block is over. Rejects with ClickHouse's error.
 */
export async function readBlocks(client: ClickHouseClient, reach: Reach, query: BlockQuery): Promise<BlockRow[]> {
  const within = withinReach(reach, 'd.subject')
  const { limits, ofOneSubject: own, longestMs, nowMs, subject = '', addresses = [], rowsMax } = query
  const refused = `SELECT d.id AS id, toInt64(toUnixTimestamp64Milli(d.ts)) AS at, d.count AS times, l.name AS name, l.by AS by,
      toString(l.by) AS scope, if(l.name IN {own:Array(String)}, if(l.at = '', d.subject, toString(l.at)), '') AS who, d.reason = 'limit' AND d.denied_by = l.name AS sets
    FROM decisions AS d ARRAY JOIN d.limits AS l
    WHERE d.ts >= fromUnixTimestamp64Milli({from:Int64}) AND d.outcome = 'deny' AND d.reason IN ('limit', 'blocked') AND d.count > 0
      AND ${within.sql} AND l.name IN {limits:Array(String)} AND l.remaining = 0 AND at + toInt64(l.reset_ms) > {now:Int64}
      ${subject === '' ? '' : 'AND who = {subject:String}'}
      ${addresses.length === 0 ? '' : "AND (l.by['ip'] IN {addresses:Array(String)} OR who IN {callers:Array(String)})"}`
  return await readRows<BlockRow>(
    client,
    `WITH refused AS (${refused}),
      blocks AS (
        SELECT name, who, scope, any(by) AS by, countIf(sets) > 0 AS known, if(known, maxIf(at, sets), min(at)) AS last
        FROM refused GROUP BY name, who, scope ORDER BY last DESC, name, who, scope LIMIT {rows:UInt32})
    SELECT b.name AS name, b.who AS subject, any(b.by) AS by, toString(argMinIf(r.id, r.at, r.sets OR NOT b.known)) AS decision,
      minIf(r.at, r.sets OR NOT b.known) AS since_ms, sum(r.times) AS refusals
    FROM refused AS r INNER JOIN blocks AS b ON r.name = b.name AND r.who = b.who AND r.scope = b.scope
    WHERE r.at > b.last - ${repeatedMs} GROUP BY b.name, b.who, b.scope ORDER BY since_ms DESC, name, subject, b.scope`,
    {
      limits,
      own,
      subject,
      addresses,
      rows: rowsMax,
      now: nowMs - clocksMs,
      from: nowMs - longestMs - clocksMs,
      callers: addresses.map((address) => `ip:${address}`),
      ...within.params,
    },
    { clickhouse_settings: { ...decisionFormat.clickhouse_settings, max_execution_time: secondsMax } },
  )
}
