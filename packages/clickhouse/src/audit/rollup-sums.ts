import type { HourSums } from '@weir/core/audit/compare-rollups.ts'
import { type ClickHouseClient, readRows } from '../connect.ts'
import { type BucketsQuery, presentBuckets, type Rollup, type Span, wantedBuckets } from './rollups.ts'

async function sumsPerHour(
  client: ClickHouseClient,
  { keys, sums }: Rollup,
  { query: buckets, settings }: BucketsQuery,
): Promise<HourSums[]> {
  const totals = sums.map((name) => `toString(sum(toInt128(sum_${name}))) AS ${name}`)
  const row = [...keys, ...sums.map((name) => `sum_${name}`)].join(', ')
  const query = `SELECT toString(toUnixTimestamp(toStartOfHour(b.ts))) AS hour, ${totals.join(', ')},
      toString(groupBitXor(cityHash64(${row}))) AS checksum
    FROM (${buckets}) AS b GROUP BY hour ORDER BY hour ${settings}`
  const rows = await readRows<Readonly<Record<string, string>>>(client, query)
  return rows.map((found) => ({
    hourMs: Number(found.hour) * 1_000,
    sums: Object.fromEntries(sums.map((name) => [name, BigInt(found[name] ?? 0)])),
    checksum: found.checksum ?? '',
  }))
}

/** Reads the sums that the rollup should have, by the raw rows of the span. */
export const rawSums = (client: ClickHouseClient, rollup: Rollup, span: Span): Promise<HourSums[]> =>
  sumsPerHour(client, rollup, wantedBuckets(rollup, span))

/** Reads the sums that the rollup has. */
export const rollupSums = (client: ClickHouseClient, rollup: Rollup, span: Span): Promise<HourSums[]> =>
  sumsPerHour(client, rollup, presentBuckets(rollup, span))

/** Subtracts the rollup from its raw rows, bucket by bucket; `d_` before each sum. */
function differences(rollup: Rollup, span: Span): BucketsQuery {
  const { keys, sums } = rollup
  const wanted = wantedBuckets(rollup, span)
  const signed = (sign: string) => [...keys, ...sums.map((name) => `${sign}sum_${name} AS e_${name}`)].join(', ')
  const summed = sums.map((name) => `sum(e_${name}) AS d_${name}`)
  const query = `SELECT ${[...keys, ...summed].join(', ')}
    FROM (SELECT ${signed('')} FROM (${wanted.query})
      UNION ALL SELECT ${signed('-')} FROM (${presentBuckets(rollup, span).query}))
    GROUP BY ${keys.join(', ')} HAVING ${sums.map((name) => `d_${name} != 0`).join(' OR ')}`
  return { query, settings: wanted.settings }
}

/** Returns the names of `rowsMax` buckets of a span that differ, each as a text for people. */
export async function differingBuckets(
  client: ClickHouseClient,
  rollup: Rollup,
  span: Span,
  rowsMax: number,
): Promise<string[]> {
  const { query: found, settings } = differences(rollup, span)
  const name = `arrayStringConcat([${rollup.keys.map((key) => `toString(${key})`).join(', ')}], ' ')`
  const query = `SELECT ${name} AS bucket FROM (${found}) ORDER BY bucket LIMIT ${rowsMax} ${settings}`
  const rows = await readRows<{ bucket: string }>(client, query)
  return rows.map(({ bucket }) => bucket)
}

/** A bucket that differs: its keys, of which some are lists, and `d_` before each sum. */
export type SumsRow = Readonly<Record<string, string | readonly string[]>>

/** Buckets of one comparison: some 50 MB on the wire. The next comparison finds the rest. */
const bucketsMax = 100_000

/** Returns a row for each bucket of a span that differs: what the rollup lacks, negative where it has too much. */
export function missingSums(
  connection: { query(query: string): Promise<SumsRow[]> },
  rollup: Rollup,
  span: Span,
): Promise<SumsRow[]> {
  const { query, settings } = differences(rollup, span)
  return connection.query(`${query} LIMIT ${bucketsMax} ${settings}`)
}

/**
 * Returns the lines of an insert that adds what `missingSums` found. A negative number takes away, also where the
 * column has no sign: sums wrap around.
 */
export function correctionLines({ keys, sums, unsigned }: Rollup, missing: readonly SumsRow[]): Buffer {
  const asColumn = (name: string, found: SumsRow[string] = '0') =>
    unsigned.has(name) ? BigInt.asUintN(64, BigInt(String(found))).toString() : found
  const lines = missing.map((row) => {
    const values = sums.map((name) => [name, asColumn(name, row[`d_${name}`])])
    return `${JSON.stringify(Object.fromEntries([...keys.map((key) => [key, row[key]]), ...values]))}\n`
  })
  return Buffer.from(lines.join(''))
}
