import { randomUUID } from 'node:crypto'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'

/** What `fillYear` makes. */
export interface Year {
  readonly rows: number
  readonly fromMs: number
  readonly toMs: number
}

/** The number of a subject is this times the fourth power of an even number from 0 to 1: the first makes 7%. */
const subjectCount = 50_000
/** A decision in so many is corrected, by the row behind it. */
const correctedEvery = 200
const partitions = 12
/** Rows of one insert: a part for each month. */
const rowsPerInsert = 250_000

/** Number `n` as 16 bytes of a UUID of version 7, of the time `ms`. */
export const uuid7 = (n: string) => `UUIDNumToString(toFixedString(concat(
  substring(reinterpretAsFixedString(byteSwap(toUInt64(ts_ms))), 3, 6),
  char(112 + bitAnd(cityHash64(${n}, 'a'), 15), bitAnd(cityHash64(${n}, 'b'), 255), 128 + bitAnd(cityHash64(${n}, 'c'), 63)),
  substring(reinterpretAsFixedString(cityHash64(${n}, 'd')), 1, 7)), 16))`

/**
 * Rows `from` to `to` of the year. Everything follows from `n`; a correction, each 200th row, repeats what the row
 * before says. Refusals are one in twelve, some of them floods, and some of what was allowed was so in shadow.
 */
const insertRows = ({ rows, fromMs, toMs }: Year, from: number, to: number, [journal, topicId]: readonly string[]) => `
INSERT INTO weir.decisions (v, id, ts, subject, key_id, plan, route, method, cost, count, outcome, reason, mode, charged,
  denied_by, limits, policy, retry_ms, journal, seq, topic_id, partition, offset, corrects, adjustment)
WITH
  n % ${correctedEvery} = ${correctedEvery - 1} AS is_correction,
  n - is_correction AS k,
  cityHash64(k) AS h,
  ${fromMs} + intDiv(toUInt128(k) * ${toMs - fromMs}, ${rows}) AS ts_ms,
  toUInt32(floor(${subjectCount} * pow(cityHash64(k, 's') / 18446744073709551616., 4))) AS s,
  ['POST /v1/search', 'GET /v1/items/{id}', 'GET /v1/items', 'PUT /v1/items/{id}', 'GET /v1/report'] AS routes,
  routes[1 + if(s % 2 = 0, h % 5, 0)] AS r,
  h % 12 = 0 AND k % ${correctedEvery} != ${correctedEvery - 2} AS is_denied,
  h % 97 = 1 AND NOT is_denied AS is_shadow,
  intDiv(h, 64) % 100 AS used,
  toUUID('00000000-0000-0000-0000-000000000000') AS none
SELECT 1, toUUID(${uuid7('n')}), fromUnixTimestamp64Milli(toInt64(ts_ms), 'UTC'), concat('customer-', toString(s)),
  concat('key-', toString(s), '-', toString(h % 3)), if(s % 10 = 0, 'top', 'free'), r, splitByChar(' ', r)[1],
  if(is_correction, 0, 1 + intDiv(h, 16) % 5), if(is_correction, 0, if(is_denied AND h % 1008 = 0, 214, 1)),
  if(is_denied, 'deny', 'allow'), if(is_denied, 'limit', 'ok'), if(is_shadow, 'shadow', 'enforce'), if(is_denied, 'no', 'yes'),
  if(is_denied OR is_shadow, 'minute', ''),
  [tuple('minute', 100, used, 100 - used, 60000 - ts_ms % 60000, map(), ''),
   tuple('day', 100000, used * 7, 100000 - used * 7, 86400000 - ts_ms % 86400000, map(), '')]
   ::Array(Tuple(name LowCardinality(String), size UInt64, used UInt64, remaining UInt64, reset_ms UInt64, by Map(LowCardinality(String), String), at LowCardinality(String))),
  7, if(is_denied, 60000 - ts_ms % 60000, 0), '${journal}', intDiv(n, ${partitions}), '${topicId}', n % ${partitions}, intDiv(n, ${partitions}),
  if(is_correction, toUUID(${uuid7('k')}), none), if(is_correction, -1, 0)
FROM (SELECT number AS n FROM numbers(${from}, ${to - from}))
SETTINGS async_insert = 0, insert_deduplicate = 0, max_insert_threads = 1`

/** Inserts a year of decisions, evenly over its time, made inside the engine; the views fill the rollups meanwhile. */
export async function fillYear(client: ClickHouseClient, year: Year, progress: (line: string) => void): Promise<void> {
  const ids = [randomUUID(), randomUUID()]
  const startedAt = performance.now()
  for (let from = 0; from < year.rows; from += rowsPerInsert) {
    const to = Math.min(year.rows, from + rowsPerInsert)
    await client.command({ query: insertRows(year, from, to, ids) })
    if (Math.floor(to / 10_000_000) === Math.floor(from / 10_000_000)) continue
    const minutes = (performance.now() - startedAt) / 60_000
    progress(
      `${to.toLocaleString('en-US')} of ${year.rows.toLocaleString('en-US')} rows after ${minutes.toFixed(1)} min`,
    )
  }
}
