import { text as textOf } from 'node:stream/consumers'
import { filledSteps } from '@weir/api/query/fill.ts'
import { positionOf, sortKeyOf } from '@weir/api/query/ranking.ts'
import { parseUsageQuery, type UsageQuery } from '@weir/api/query/usage-query.ts'
import { askUsage, askUsageTotals, type UsageRow, usageSource } from '@weir/console/usage/usage-queries.ts'
import { openUsageStream, type StreamForm } from '@weir/console/usage/usage-stream.ts'
import { parseTimeZone } from '@weir/core/calendar/time-zone.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { isOnCluster } from '../support/servers/cluster-server.ts'
import { startTables } from '../support/servers/tables.ts'
import {
  decision,
  dimensions,
  insertedRow,
  quarterMs,
  question,
  reachOf,
  someReach,
  withIds,
} from '../support/usage/random-questions.ts'
import { readCsv } from '../support/usage/read-csv.ts'
import { comparable, filledModel, metBy, modelOf, sumsOf } from '../support/usage/usage-model.ts'

/** Over the tables of a cluster each takes several times as long. */
const questions = isOnCluster ? 60 : 150
const all = withIds(fc.sample(decision, { numRuns: 400, seed: 20 }))

type Changed = { readonly change?: unknown }
/** Changes of each row; of a stream they are text, or nothing for null. */
const changesOf = (rows: readonly object[]) =>
  rows.map(({ change }: Changed) => (change === undefined || change === null || change === '' ? null : Number(change)))
/** Rows with their changes as numbers. */
const numbered = (rows: readonly object[]) =>
  rows.map((row, at) => ('change' in row ? { ...row, change: changesOf(rows)[at] } : row))

function expectChanges(found: readonly object[], model: readonly object[]): void {
  const [changes, expected] = [changesOf(found), changesOf(model)]
  const isClose = expected.map((one, at) => {
    const change = changes[at] ?? null
    return one === null || change === null ? one === change : Math.abs(change - one) <= 1e-4 * (1 + Math.abs(one))
  })
  expect([changes, isClose]).toEqual([changes, isClose.map(() => true)])
}

const tables = await startTables()
const streamed = (reach: Reach, query: UsageQuery, form: Partial<StreamForm> & Pick<StreamForm, 'format'>) => {
  const question = { source: usageSource(reach, query), query, form: { sumsAreText: true, isCsvExact: true, ...form } }
  return openUsageStream(tables.client, reach, question, AbortSignal.timeout(60_000))
}
const isText = new Set<string>(['ts', 'other', ...dimensions])

async function csvOf(reach: Reach, query: UsageQuery, isCsvExact: boolean): Promise<object[]> {
  const [names = [], ...lines] = readCsv(await textOf(await streamed(reach, query, { format: 'csv', isCsvExact })))
  return lines.map((line) =>
    Object.fromEntries(names.map((name, at) => [name, name === 'other' ? line[at] === 'true' : line[at]])),
  )
}

async function jsonlOf(reach: Reach, query: UsageQuery, sumsAreText: boolean): Promise<object[]> {
  const lines = (await textOf(await streamed(reach, query, { format: 'jsonl', sumsAreText }))).trimEnd().split('\n')
  // Numbers of all their digits, which JSON.parse would round.
  const quoted = sumsAreText ? lines : lines.map((line) => line.replaceAll(/":(-?\d+)(?=[,}])/g, '":"$1"'))
  const rows = quoted.map((line) => JSON.parse(line))
  expect(rows.at(-1)).toEqual({ end: true, rows: sumsAreText ? rows.length - 1 : String(rows.length - 1) })
  return rows.slice(0, -1)
}

/** As ClickHouse reads it. */
async function parquetOf(reach: Reach, query: UsageQuery): Promise<object[]> {
  const [{ client }, names] = [tables, query.by.map((name) => `${name} String`)]
  const more = [...(query.step === 'total' ? [] : ['ts String']), ...(query.ranking?.other ? ['other Bool'] : [])]
  const sums = ['count Int64', 'allowed Int64', 'denied Int64', 'cost Decimal(38, 0)']
  const earlier =
    query.comparison === undefined ? [] : [...sums.map((one) => `previous_${one}`), 'change Nullable(Float64)']
  const columns = [...more, ...names, ...sums, ...earlier, ...(query.ranking?.other ? ['groups UInt64'] : [])]
  await client.command({ query: `CREATE OR REPLACE TABLE read_parquet (${columns.join(', ')}) ENGINE = Memory` })
  const values = await streamed(reach, query, { format: 'parquet' })
  await client.insert({ table: 'read_parquet', values, format: 'Parquet' })
  const clickhouse_settings = { output_format_json_quote_decimals: 1 } as const
  const text = { query: 'SELECT * FROM read_parquet', format: 'JSONEachRow', clickhouse_settings } as const
  const found = await client.query(text)
  return (await found.json<object>()).map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, isText.has(name) || value === null ? value : String(value)]),
    ),
  )
}

const guarded = (rows: readonly UsageRow[]): object[] =>
  rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        dimensions.some((one) => one === name) && /^[=+\-@\t\r\0]/.test(String(value)) ? `'${value}` : value,
      ]),
    ),
  )

await tables.client.insert({ table: 'weir.decisions', format: 'JSONEachRow', values: all.map(insertedRow) })
afterAll(() => tables.close())

test(`${questions} random questions are answered as the decisions themselves say`, { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(question, someReach, async (asked, own) => {
      const reach = reachOf(own)
      const met = metBy(all, own, asked)
      const model = modelOf(met, asked)
      const rows = await askUsage(tables.client, reach, asked)
      expect(comparable(rows)).toEqual(comparable(model))
      if (rows.length === model.length) expectChanges(rows, model)
      const at = Math.floor(rows.length / 2)
      const after = at === 0 ? undefined : positionOf(sortKeyOf(asked), { ...rows[at - 1] })
      expect(await askUsage(tables.client, reach, asked, { after, rowsMax: 3 })).toEqual(rows.slice(at, at + 3))
      const [totals, expected] = [await askUsageTotals(tables.client, reach, asked), sumsOf(met, asked)]
      expect({ ...totals, change: 0 }).toEqual({ ...expected, change: 0 })
      expectChanges([totals], [expected])
      // One format for each question, in turn.
      const [read, same] = [
        [() => csvOf(reach, asked, true), rows] as const,
        [() => csvOf(reach, asked, false), guarded(rows)] as const,
        [() => jsonlOf(reach, asked, asked.by.length % 2 === 0), rows] as const,
        [() => parquetOf(reach, asked), rows] as const,
      ][(Math.floor(asked.toMs / quarterMs) + asked.by.length) % 4] ?? [async () => [], rows]
      expect(numbered(await read())).toEqual(same)
    }),
    { numRuns: questions },
  )
})

test('60 random questions with fill=zero have a row of each step, of nothing only where all is counted', async () => {
  await fc.assert(
    fc.asyncProperty(question, someReach, fc.nat(), async (random, own, counted) => {
      const asked = { ...random, ranking: undefined, comparison: undefined }
      fc.pre(asked.step !== 'total')
      const reach = reachOf(own)
      const completeMs = asked.fromMs + (counted % (asked.toMs - asked.fromMs + quarterMs))
      const filled = filledSteps(asked, quarterMs, completeMs)
      const model = filledModel(metBy(all, own, asked), asked, completeMs)
      const rows = await askUsage(tables.client, reach, asked, { rowsMax: 10_000, filled })
      expect(rows).toEqual(model.slice(0, 10_000))
      const at = Math.floor(rows.length / 2)
      const after = at === 0 ? undefined : positionOf(sortKeyOf(asked), { ...rows[at - 1] })
      expect(await askUsage(tables.client, reach, asked, { after, rowsMax: 3, filled })).toEqual(rows.slice(at, at + 3))
      const form = { format: 'jsonl', sumsAreText: true, isCsvExact: true } as const
      const source = usageSource(reach, asked)
      const stream = await openUsageStream(
        tables.client,
        reach,
        { source, query: asked, form, filled },
        AbortSignal.timeout(60_000),
      )
      const lines = (await textOf(stream)).trimEnd().split('\n').slice(0, -1)
      expect(lines.slice(0, 10_000).map((line) => JSON.parse(line))).toEqual(rows)
    }),
    { numRuns: 60 },
  )
}, 120_000)

test.each([
  ['subject', 'acme', ['acme', 'acme-2']],
  ['met_limit', 'per', ['per-ip']],
  ['ip', '2001', ['2001:db8::/64']],
  ['route', '%', []],
] as const)(
  'the values of %s that begin with %s are %s, each with its decisions',
  async (name, namePrefix, expected) => {
    const parsed = parseUsageQuery(
      { by: name, step: 'total', order: '-count', from: '2027-03-27', to: '2027-04-05' },
      { nowMs: Date.now(), isNarrow: true },
    )
    if (parsed.kind === 'problems') throw new Error(parsed.problems.join())
    const model = modelOf(metBy(all, undefined, parsed.query), parsed.query)
    const wanted = model.filter((row) => row[name]?.startsWith(namePrefix))
    expect(wanted.map((row) => row[name]).toSorted()).toEqual(expected)
    const rows = await askUsage(tables.client, Reach.everybody, { ...parsed.query, namePrefix })
    expect(rows).toEqual(wanted)
  },
)

test('every time zone that a question or a policy may name is one that ClickHouse knows', async () => {
  const known = (await tables.rows<{ zone: string }>('SELECT time_zone AS zone FROM system.time_zones')).map(
    ({ zone }) => zone,
  )
  const named = [...Intl.supportedValuesOf('timeZone'), ...known, 'US/Pacific-New', 'Canada/East-Saskatchewan']
  const read = named.flatMap((zone) => [parseTimeZone(zone), parseTimeZone(zone.toLowerCase())])
  const zones = new Set(read.filter((zone) => zone !== undefined))
  expect([...zones].filter((zone) => !known.includes(zone))).toEqual([])
  expect(zones.size).toBeGreaterThan(500)
})
