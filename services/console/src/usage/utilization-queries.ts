import type { UtilizationQuery } from '@weir/api/query/utilization-query.ts'
import type { UtilizationRow as ShownRow } from '@weir/api/utilization.ts'
import { type ClickHouseClient, readRows } from '@weir/clickhouse/connect.ts'
import { pageMsMax, questionBounds, throwBound } from '@weir/clickhouse/question-bounds.ts'
import { withinReach } from '@weir/clickhouse/within-reach.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { filtersOf } from './filters.ts'
import { bucketStart, timeSql } from './rollup-sql.ts'

/** How near a subject came to a limit. Counts are text, as they may exceed 2^53. */
export interface UtilizationRow extends Omit<ShownRow, 'at' | 'runs_out' | 'removed'> {
  /** Start of the last quarter hour that had this share, in milliseconds since the epoch. */
  readonly at_ms: number
  /** Units of the allowed decisions since `paceFromMs`, until now. */
  readonly pace_cost: number
  /** The last quarter hour since then in which a decision met the limit, and the most in use in it; 0 for none. */
  readonly last_ms: number
  readonly last_used: number
}

/** Which rows of an answer are read. */
export interface UtilizationPosition {
  /** The position of the last row before; undefined for the first page. */
  readonly after: readonly string[] | undefined
  readonly rowsMax: number
  /** From when on the pace is measured. */
  readonly paceFromMs: number
}

/** The table has quarter hours. */
export const utilizationBucketMs = 900_000

const sums = {
  share: 'max(u.share)',
  count: 'sum(u.count)',
  refused: 'sum(u.refused)',
  shadow_refused: 'sum(u.shadow_refused)',
  cost: 'sum(toInt128(u.cost))',
}
const texts = ['count', 'refused', 'shadow_refused', 'cost'] as const

const isAsked = `u.ts >= ${timeSql('from')} AND u.ts < ${timeSql('to')}`
const bucketOf = (ms: number) => bucketStart(ms, utilizationBucketMs)

/** Which subjects and limits a page has, from what it is sorted by alone. */
function pageSql(
  { order, shareFrom, shareTo }: UtilizationQuery,
  where: string,
  { after, rowsMax }: UtilizationPosition,
) {
  const isShare = order.by === 'share'
  const value = `${order.descending ? '-' : ''}${isShare ? sums.share : `toInt128(${sums[order.by]})`}`
  const sorted = `${value}, u.subject, toString(u.limit)`
  const position = `{after_value:${isShare ? 'Float32' : 'Int128'}}, {after_subject:String}, {after_limit:String}`
  const having = [
    shareFrom === undefined ? [] : `${sums.share} >= {share_from:Float32}`,
    shareTo === undefined ? [] : `${sums.share} < {share_to:Float32}`,
    after === undefined ? [] : `tuple(${sorted}) > tuple(${position})`,
  ].flat()
  return `SELECT u.subject, u.limit FROM limits_15m AS u WHERE ${isAsked} AND ${where} GROUP BY u.subject, u.limit
    ${having.length === 0 ? '' : `HAVING ${having.join(' AND ')}`} ORDER BY ${sorted} LIMIT ${rowsMax}`
}

/** The rows of these subjects and limits. By quarter hours first: until parts are merged, one has several rows. */
function rowsSql({ order }: UtilizationQuery, where: string, page: string): string {
  const ms = (ts: string) => `toInt64(toUnixTimestamp(${ts})) * 1000`
  const whole = (name: keyof typeof sums) => `${name === 'share' ? 'max' : 'sum'}If(u.${name}, u.asked)`
  const atMost = (column: string) => `argMaxIf(u.${column}, tuple(u.share, u.ts), u.asked)`
  const quarters = `SELECT u.subject AS subject, u.limit AS limit, u.ts AS ts, ${isAsked} AS asked,
      u.ts >= ${timeSql('pace_from')} AS late, max(u.used) AS used, max(u.size) AS size,
      ${Object.entries(sums).map(([name, sql]) => `${sql} AS ${name}`)}
    FROM limits_15m AS u WHERE (asked OR late) AND ${where} AND (u.subject, u.limit) IN (${page}) GROUP BY subject, limit, ts`
  return `SELECT u.subject AS subject, u.limit AS limit, ${whole('share')} AS share,
      toString(${atMost('used')}) AS used, toString(${atMost('size')}) AS size, ${ms(atMost('ts'))} AS at_ms,
      ${texts.map((name) => `toString(${whole(name)}) AS ${name}`)},
      toFloat64(sumIf(u.cost, u.late)) AS pace_cost, ${ms('maxIf(u.ts, u.late)')} AS last_ms,
      toFloat64(argMaxIf(u.used, u.ts, u.late)) AS last_used
    FROM (${quarters}) AS u GROUP BY subject, limit
    ORDER BY ${whole(order.by)} ${order.descending ? 'DESC' : 'ASC'}, subject, limit`
}

const settings = {
  ...questionBounds(pageMsMax),
  output_format_json_quote_64bit_integers: 0,
  // Rows of a subject and a limit follow each other: a month takes a third of what a table of all of them takes.
  optimize_aggregation_in_order: 1,
} as const

/**
 * Reads a page of how near subjects came to their limits. Which rows those are is found first; what else they have is
 * read for these alone. Rejects with ClickHouse's error, and with a QuestionBoundMet for what asks too much.
 */
export async function askUtilization(
  client: ClickHouseClient,
  reach: Reach,
  query: UtilizationQuery,
  position: UtilizationPosition,
): Promise<UtilizationRow[]> {
  const within = withinReach(reach, 'u.subject')
  const filters = filtersOf((name) => `u.${name}`, query)
  const where = [within.sql, ...filters.sql].join(' ')
  const [after_value = '0', after_subject = '', after_limit = ''] = position.after ?? []
  const params = {
    from: bucketOf(query.fromMs),
    to: bucketOf(query.toMs + utilizationBucketMs - 1),
    pace_from: bucketOf(position.paceFromMs),
    share_from: query.shareFrom,
    share_to: query.shareTo,
    after_value,
    after_subject,
    after_limit,
    ...within.params,
    ...filters.params,
  }
  const sql = rowsSql(query, where, pageSql(query, where, position))
  return readRows<UtilizationRow>(client, sql, params, { clickhouse_settings: settings }).catch(throwBound)
}
