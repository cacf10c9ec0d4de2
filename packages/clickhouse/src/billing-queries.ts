import type { Period } from '@weir/core/prices/forecast.ts'
import type { RouteUsage } from '@weir/core/prices/quote.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { type ClickHouseClient, readRows } from './connect.ts'
import { withinReach } from './within-reach.ts'

/** Units in 128 bits, as everywhere: text keeps all digits of both. */
const usedSql = (within: string) => `
  SELECT route, toString(sum(toInt128(cost))) AS units, toString(sum(count)) AS decisions
  FROM usage_15m
  WHERE ${within} AND subject = {subject:String} AND outcome = 'allow'
    AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64})
  GROUP BY route ORDER BY route`

/**
 * Returns what a subject's allowed decisions used, by route, from the rollup by quarter hours: the period begins and
 * ends with one, as days do in every time zone of today. Rejects with ClickHouse's error.
 */
export async function askPeriodUsage(
  client: ClickHouseClient,
  reach: Reach,
  subject: string,
  { fromMs, toMs }: Period,
): Promise<readonly RouteUsage[]> {
  const { sql, params } = withinReach(reach, 'subject')
  const asked = { ...params, subject, from: fromMs, to: toMs }
  const rows = await readRows<Record<keyof RouteUsage, string>>(client, usedSql(sql), asked)
  return rows.map(({ route, units, decisions }) => ({ route, units: BigInt(units), decisions: BigInt(decisions) }))
}
