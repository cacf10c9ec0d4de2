import type { HourSums } from '@weir/core/audit/compare-rollups.ts'
import type { ClickHouseClient } from '../connect.ts'
import { type BucketsQuery, presentBuckets, type Rollup, wantedBuckets } from './rollups.ts'
import type { Span } from './span.ts'

async function sumsPerHour(
  client: ClickHouseClient,
  { keys, sums }: Rollup,
  { query: buckets, settings }: BucketsQuery,
): Promise<HourSums[]> {
  const totals = sums.map((name) => `toString(sum(sum_${name})) AS ${name}`)
  const row = [...keys, ...sums.map((name) => `sum_${name}`)].join(', ')
  const query = `SELECT toString(toUnixTimestamp(toStartOfHour(b.ts))) AS hour, ${totals.join(', ')},
      toString(groupBitXor(cityHash64(${row}))) AS checksum
    FROM (${buckets}) AS b GROUP BY hour ORDER BY hour ${settings}`
  const answer = await client.query({ query, format: 'JSONEachRow' })
  const rows = await answer.json<Readonly<Record<string, string>>>()
  return rows.map((found) => ({
    hourMs: Number(found.hour) * 1_000,
    sums: Object.fromEntries(sums.map((name) => [name, BigInt(found[name] ?? 0)])),
    checksum: found.checksum ?? '',
  }))
}

/** What the raw rows of the span say that the rollup should be. */
export const rawSums = (client: ClickHouseClient, rollup: Rollup, span: Span): Promise<HourSums[]> =>
  sumsPerHour(client, rollup, wantedBuckets(rollup, span))

/** What the rollup is. */
export const rollupSums = (client: ClickHouseClient, rollup: Rollup, span: Span): Promise<HourSums[]> =>
  sumsPerHour(client, rollup, presentBuckets(rollup, span))

/** The buckets of a span that differ, `rowsMax` of them, each as a text for people. */
export async function differingBuckets(
  client: ClickHouseClient,
  rollup: Rollup,
  span: Span,
  rowsMax: number,
): Promise<string[]> {
  const { keys, sums } = rollup
  const wanted = wantedBuckets(rollup, span)
  const signed = (sign: string) => [...keys, ...sums.map((name) => `${sign}sum_${name} AS d_${name}`)].join(', ')
  const query = `SELECT arrayStringConcat([${keys.map((name) => `toString(${name})`).join(', ')}], ' ') AS bucket
    FROM (SELECT ${signed('-')} FROM (${wanted.query})
      UNION ALL SELECT ${signed('')} FROM (${presentBuckets(rollup, span).query}))
    GROUP BY ${keys.join(', ')} HAVING ${sums.map((name) => `sum(d_${name}) != 0`).join(' OR ')}
    ORDER BY bucket LIMIT ${rowsMax} ${wanted.settings}`
  const answer = await client.query({ query, format: 'JSONEachRow' })
  return (await answer.json<{ bucket: string }>()).map(({ bucket }) => bucket)
}
