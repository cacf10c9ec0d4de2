import type { HourSums } from '@weir/core/audit/compare-rollups.ts'
import type { ClickHouseClient } from '../connect.ts'
import { type BucketsQuery, presentBuckets, type Rollup, wantedBuckets } from './rollups.ts'
import type { Span } from './span.ts'

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

/** Bucket by bucket, `d_` before each sum: what the raw rows have more than the rollup. */
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

/** The buckets of a span that differ, `rowsMax` of them, each as a text for people. */
export async function differingBuckets(
  client: ClickHouseClient,
  rollup: Rollup,
  span: Span,
  rowsMax: number,
): Promise<string[]> {
  const { query: found, settings } = differences(rollup, span)
  const name = `arrayStringConcat([${rollup.keys.map((key) => `toString(${key})`).join(', ')}], ' ')`
  const query = `SELECT ${name} AS bucket FROM (${found}) ORDER BY bucket LIMIT ${rowsMax} ${settings}`
  const answer = await client.query({ query, format: 'JSONEachRow' })
  return (await answer.json<{ bucket: string }>()).map(({ bucket }) => bucket)
}

/** A bucket: its keys, and `d_` before each sum. */
export type SumsRow = Readonly<Record<string, string>>

/** What is missing in the rollup's buckets of a span, or too much in them, then negative: a row for each that differs. */
export function missingSums(
  connection: { ask(query: string): Promise<SumsRow[]> },
  rollup: Rollup,
  span: Span,
): Promise<SumsRow[]> {
  const { query, settings } = differences(rollup, span)
  return connection.ask(`${query} ${settings}`)
}

/** Rows of one statement: they travel in the address of the request, of which ClickHouse reads 128 kB a field. */
const rowsAtOnce = 100

const field = (name: string, type: string) => `JSONExtract(row, '${name}', '${type}')`

/** Adds to sums what `missingSums` found. A negative number takes away, also where the column has no sign: sums wrap around. */
export function addSumsQuery({ table, keys, sums }: Rollup, missing: readonly SumsRow[]) {
  const fields = [
    ...keys.map((key) => (key === 'ts' ? `toDateTime(${field(key, 'String')}, 'UTC')` : field(key, 'String'))),
    ...sums.map((name) => field(`d_${name}`, 'Int64')),
  ]
  // The function format() would do, but its columns may have defaults that read files: the local ClickHouse refuses it.
  const query = `INSERT INTO ${table} (${[...keys, ...sums].join(', ')}) SELECT ${fields.join(', ')}
    FROM (SELECT arrayJoin(splitByChar('\n', {rows:String})) AS row)
    SETTINGS insert_deduplicate = 0, async_insert = 0`
  return Array.from({ length: Math.ceil(missing.length / rowsAtOnce) }, (_, at) => {
    const some = missing.slice(at * rowsAtOnce, (at + 1) * rowsAtOnce)
    return { query, params: { rows: some.map((row) => JSON.stringify(row)).join('\n') } }
  })
}
