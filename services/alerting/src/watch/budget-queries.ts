import { type ClickHouseClient, readRows } from '@weir/clickhouse/connect.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { RouteUsage } from '@weir/core/prices/quote.ts'

/** Less than the client waits: a query that is repeated does not run twice. */
const bounded = { clickhouse_settings: { max_execution_time: 15 } }

/** What one subject used in a time of its own; both ends are full quarter hours. */
export interface SubjectPeriod extends Period {
  readonly subject: string
}

const periodSql = (bound: string) =>
  `transform(u.subject, {subjects:Array(String)}, {${bound}:Array(Int64)}, toInt64(0))`
const usedSql = `
  SELECT u.subject AS subject, u.route AS route, toString(sum(toInt128(u.cost))) AS units, toString(sum(u.count)) AS decisions
  FROM usage_15m AS u
  WHERE u.subject IN {subjects:Array(String)} AND u.outcome = 'allow'
    AND u.ts >= fromUnixTimestamp64Milli({first:Int64}) AND u.ts < fromUnixTimestamp64Milli({end:Int64})
    AND toInt64(toUnixTimestamp(u.ts)) * 1000 >= ${periodSql('froms')}
    AND toInt64(toUnixTimestamp(u.ts)) * 1000 < ${periodSql('tos')}
  GROUP BY subject, route`

/**
 * Returns what the allowed decisions of some subjects used, each in its own period, by subject and route: one query
 * however many periods they have. Rejects with ClickHouse's error.
 */
export async function askUsageOf(
  client: ClickHouseClient,
  periods: readonly SubjectPeriod[],
): Promise<ReadonlyMap<string, readonly RouteUsage[]>> {
  if (periods.length === 0) return new Map()
  const [froms, tos] = [periods.map(({ fromMs }) => fromMs), periods.map(({ toMs }) => toMs)]
  const asked = { subjects: periods.map(({ subject }) => subject), froms, tos }
  const span = { first: Math.min(...froms), end: Math.max(...tos) }
  type Row = Record<keyof RouteUsage | 'subject', string>
  const rows = await readRows<Row>(client, usedSql, { ...asked, ...span }, bounded)
  const used = rows.map(({ units, decisions, ...of }) => {
    return { ...of, units: BigInt(units), decisions: BigInt(decisions) }
  })
  return Map.groupBy(used, ({ subject }) => subject)
}
