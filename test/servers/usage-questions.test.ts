import { text as textOf } from 'node:stream/consumers'
import { askUsage, askUsageTotals, type UsageRow, usageSource } from '@weir/clickhouse/usage-queries.ts'
import { openUsageStream, type StreamForm } from '@weir/clickhouse/usage-stream.ts'
import { measures, placeOf, type Ranking, sortKeyOf } from '@weir/core/usage/ranking.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import type { Step, UsageDimension, UsageQuery } from '@weir/core/usage/usage-query.ts'
import fc from 'fast-check'
import { Temporal } from 'temporal-polyfill'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTables, type Tables } from '../support/servers/tables.ts'

/** Clocks in New York go back on the first of November. */
const firstMs = Date.parse('2026-10-30T00:00:00Z')
const [spanMs, quarterMs] = [4 * 86_400_000, 900_000]
const questions = 500

const values = {
  subject: ['acme', 'acme-2', 'bolt', "o'neil", 'b\\t{x:String}', 'größe', '=1+1"\r\n,', "-'x"],
  key_id: ['', 'a-1', 'b-1'],
  plan: ['free', 'top'],
  route: ['POST /v1/search', 'GET /v1/users/:id', ''],
  method: ['GET', 'POST', ''],
  outcome: ['allow', 'deny'],
  denied_by: ['', 'minute', 'day'],
} as const satisfies Record<UsageDimension, readonly string[]>
const dimensions = Object.keys(values) as UsageDimension[]

interface Decision extends Record<UsageDimension, string> {
  readonly ms: number
  readonly cost: number
  /** 0 for a correction; many for a flood of equal refusals. */
  readonly count: number
  readonly adjustment: number
}

const decision: fc.Arbitrary<Decision> = fc
  .record({
    ...(Object.fromEntries(dimensions.map((name) => [name, fc.constantFrom(...values[name])])) as Record<
      UsageDimension,
      fc.Arbitrary<string>
    >),
    ms: fc.integer({ min: 0, max: spanMs - 1 }).map((after) => firstMs + after),
    cost: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(1_000_000_000)),
    count: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(9_200_000_000) }),
    // So various that those of a group hardly cancel out: a rollup may forget what is nothing but zeros.
    adjustment: fc.integer({ min: -9_000_000, max: 9_000_000 }),
    isCorrection: fc.nat(9).map((one) => one === 0),
  })
  .map(({ isCorrection, ...one }) =>
    isCorrection ? { ...one, outcome: 'allow', count: 0 } : { ...one, adjustment: 0 },
  )

const filter = fc
  .record(
    Object.fromEntries(
      dimensions.map((name) => [name, fc.subarray([...values[name], 'none'], { minLength: 1 })]),
    ) as Record<UsageDimension, fc.Arbitrary<string[]>>,
    { requiredKeys: [] },
  )
  .map((all) => Object.fromEntries(Object.entries(all).slice(0, 2)))

const ranking = fc.record({
  measure: fc.constantFrom(...measures),
  descending: fc.boolean(),
  top: fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 12 })),
  other: fc.boolean(),
})

const question: fc.Arbitrary<UsageQuery> = fc
  .record({
    only: fc.oneof(fc.constant({}), filter),
    except: fc.oneof(fc.constant({}), filter),
    subjectPrefix: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      fc.constantFrom('', 'acme', 'b', "o'", '%'),
    ),
    at: fc.tuple(fc.nat(spanMs), fc.nat(spanMs)).filter(([a, b]) => a !== b),
    by: fc.subarray(dimensions, { maxLength: 4 }),
    step: fc.constantFrom<Step>('quarter_hour', 'hour', 'day', 'week', 'month', 'total'),
    timeZone: fc.constantFrom('UTC', 'Asia/Kathmandu', 'America/New_York', 'Pacific/Apia'),
  })
  .chain((asked) =>
    fc.oneof(fc.constant(undefined), ranking).map((one): Omit<UsageQuery, 'fromMs' | 'toMs'> & typeof asked => {
      const top = asked.by.length === 0 ? undefined : one?.top
      return { ...asked, ranking: one && { ...one, top, other: top !== undefined && one.other } }
    }),
  )
  .map(({ at, ...rest }) => ({ ...rest, fromMs: firstMs + Math.min(...at), toMs: firstMs + Math.max(...at) }))

const someReach = fc.oneof(fc.constant(undefined), fc.subarray<string>([...values.subject]))

/** Where the step of a time begins, as the console writes it. */
function startOf(ms: number, step: Step, timeZone: string): string {
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
  const length = step === 'hour' ? 3_600_000 : quarterMs
  const offsetMs = at.offsetNanoseconds / 1_000_000
  const date = at.toPlainDate()
  const first =
    step === 'week' ? date.subtract({ days: date.dayOfWeek - 1 }) : step === 'month' ? date.with({ day: 1 }) : date
  const start =
    step === 'hour' || step === 'quarter_hour'
      ? Temporal.Instant.fromEpochMilliseconds(
          Math.floor((ms + offsetMs) / length) * length - offsetMs,
        ).toZonedDateTimeISO(timeZone)
      : first.toZonedDateTime(timeZone)
  return start.toString({ timeZoneName: 'never', smallestUnit: 'second' })
}

const units = ({ cost, count, adjustment }: Decision) => BigInt(cost) * BigInt(count) + BigInt(adjustment)
const total = (of: readonly Decision[], amount: (one: Decision) => bigint) =>
  of.reduce((sum, one) => sum + amount(one), 0n)
const counted = ({ count }: Decision) => BigInt(count)

function sumsOf(rows: readonly Decision[]) {
  const allowed = rows.filter(({ outcome }) => outcome === 'allow')
  const denied = rows.filter(({ outcome }) => outcome === 'deny')
  return {
    ...{ count: String(total(rows, counted)), allowed: String(total(allowed, counted)) },
    ...{ denied: String(total(denied, counted)), cost: String(total(allowed, units)) },
  }
}

/** The decisions that a question is about, as its reader sees them. */
function metBy(all: readonly Decision[], reach: readonly string[] | undefined, asked: UsageQuery): Decision[] {
  const { only, except, subjectPrefix = '', fromMs, toMs } = asked
  const [from, to] = [Math.floor(fromMs / quarterMs) * quarterMs, Math.ceil(toMs / quarterMs) * quarterMs]
  const seen = all.map((one) => (reach !== undefined && one.outcome === 'allow' ? { ...one, denied_by: '' } : one))
  return seen.filter(
    (one) =>
      (reach?.includes(one.subject) ?? true) &&
      one.ms >= from &&
      one.ms < to &&
      one.subject.startsWith(subjectPrefix) &&
      dimensions.every((name) => only[name]?.includes(one[name]) ?? true) &&
      dimensions.every((name) => !except[name]?.includes(one[name])),
  )
}

const inOrder = (a: readonly (string | bigint)[], b: readonly (string | bigint)[]): number => {
  const at = a.findIndex((part, index) => part !== b[index])
  return at < 0 ? 0 : (a[at] ?? '') < (b[at] ?? '') ? -1 : 1
}

/** The groups that are first over the whole span. */
function topGroups(met: readonly Decision[], by: readonly UsageDimension[], { measure, descending, top }: Ranking) {
  const groups = [...Map.groupBy(met, (one) => JSON.stringify(by.map((name) => one[name])))]
  const ranked = groups.map(([names, rows]) => {
    const sum = BigInt(sumsOf(rows)[measure])
    return { names, key: [descending ? -sum : sum, ...(JSON.parse(names) as string[])] }
  })
  return new Set(
    ranked
      .toSorted((a, b) => inOrder(a.key, b.key))
      .slice(0, top)
      .map(({ names }) => names),
  )
}

/** The rows of an answer by the promise of docs/usage.md, of the decisions themselves, in order. */
function modelOf(met: readonly Decision[], { by, step, timeZone, ranking: ranked }: UsageQuery): UsageRow[] {
  const top = ranked?.top === undefined ? undefined : topGroups(met, by, ranked)
  const isOther = (one: Decision) => top !== undefined && !top.has(JSON.stringify(by.map((name) => one[name])))
  const shown = ranked?.other ? met : met.filter((one) => !isOther(one))
  const groupOf = (one: Decision) => ({
    ...(step === 'total' ? {} : { ts: startOf(one.ms, step, timeZone) }),
    ...(ranked?.other ? { other: isOther(one) } : {}),
    ...Object.fromEntries(by.map((name) => [name, isOther(one) ? '' : one[name]])),
  })
  const rows = [...Map.groupBy(shown, (one) => JSON.stringify(groupOf(one)))].map(([group, of]): UsageRow => {
    const names = new Set(of.map((one) => JSON.stringify(by.map((name) => one[name]))))
    return { ...JSON.parse(group), ...sumsOf(of), ...(ranked?.other ? { groups: String(names.size) } : {}) }
  })
  const keyOf = (row: UsageRow) => [
    ...(row.ts === undefined ? [] : [BigInt(Date.parse(row.ts))]),
    ...(ranked?.other ? [row.other ? 1n : 0n] : []),
    ...(ranked === undefined ? [] : [BigInt(row[ranked.measure]) * (ranked.descending ? -1n : 1n)]),
    ...by.map((name) => row[name] ?? ''),
  ]
  return rows.toSorted((a, b) => inOrder(keyOf(a), keyOf(b)))
}

/** Without the one row of a question that has no groups and met nothing. */
const comparable = (rows: readonly UsageRow[]) =>
  rows
    .filter(({ count, cost }) => count !== '0' || cost !== '0')
    .map((row) => JSON.stringify(row, Object.keys(row).toSorted()))

/** The fields of each line of CSV, by RFC 4180. */
function readCsv(csv: string): string[][] {
  const lines: string[][] = [[]]
  for (const [, quoted, plain = '', end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n|$)/g)) {
    if (end !== '' || quoted !== undefined || plain !== '') lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === '\r\n') lines.push([])
  }
  return lines.slice(0, -1)
}

let tables: Tables
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
  const sums = ['count UInt64', 'allowed UInt64', 'denied UInt64', 'cost Decimal(38, 0)']
  const columns = [...more, ...names, ...sums, ...(query.ranking?.other ? ['groups UInt64'] : [])]
  await client.command({ query: `CREATE OR REPLACE TABLE read_parquet (${columns.join(', ')}) ENGINE = Memory` })
  const values = await streamed(reach, query, { format: 'parquet' })
  await client.insert({ table: 'read_parquet', values, format: 'Parquet' })
  const clickhouse_settings = { output_format_json_quote_decimals: 1 } as const
  const text = { query: 'SELECT * FROM read_parquet', format: 'JSONEachRow', clickhouse_settings } as const
  const found = await client.query(text)
  return (await found.json<object>()).map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, isText.has(name) ? value : String(value)])),
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

beforeAll(async () => {
  tables = await startTables()
}, 120_000)
afterAll(() => tables?.close())

test(`${questions} random questions are answered as the decisions themselves say`, { timeout: 300_000 }, async () => {
  const all = fc.sample(decision, { numRuns: 400, seed: 20 })
  await tables.client.insert({
    table: 'weir.decisions',
    format: 'JSONEachRow',
    values: all.map(({ ms, ...row }) => ({
      ...row,
      ts: new Date(ms).toISOString().replace('T', ' ').replace('Z', ''),
      corrects: row.count === 0 ? '01934e2a-5c00-7000-8000-000000000000' : '00000000-0000-0000-0000-000000000000',
    })),
  })
  await fc.assert(
    fc.asyncProperty(question, someReach, async (asked, own) => {
      const reach = own === undefined ? Reach.everybody : Reach.of(own)
      const met = metBy(all, own, asked)
      const model = modelOf(met, asked)
      const rows = await askUsage(tables.client, reach, asked)
      expect(comparable(rows)).toEqual(comparable(model))
      const at = Math.floor(rows.length / 2)
      const after = at === 0 ? undefined : placeOf(sortKeyOf(asked), { ...rows[at - 1] })
      expect(await askUsage(tables.client, reach, asked, { after, rowsMax: 3 })).toEqual(rows.slice(at, at + 3))
      expect(await askUsageTotals(tables.client, reach, asked)).toEqual(sumsOf(met))
      expect(await csvOf(reach, asked, true)).toEqual(rows)
      expect(await csvOf(reach, asked, false)).toEqual(guarded(rows))
      expect(await jsonlOf(reach, asked, asked.by.length % 2 === 0)).toEqual(rows)
      expect(await parquetOf(reach, asked)).toEqual(rows)
    }),
    { numRuns: questions },
  )
})
