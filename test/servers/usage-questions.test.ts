import { text as textOf } from 'node:stream/consumers'
import { askUsage, askUsageTotals, type UsageRow, usageSource } from '@weir/clickhouse/usage-queries.ts'
import { openUsageStream, type StreamForm } from '@weir/clickhouse/usage-stream.ts'
import { readComparison } from '@weir/core/usage/comparison.ts'
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
    ofDays: fc.boolean(),
    isCompared: fc.boolean(),
  })
  .chain((asked) =>
    fc.oneof(fc.constant(undefined), ranking).map((one): Omit<UsageQuery, 'fromMs' | 'toMs'> & typeof asked => {
      const top = asked.by.length === 0 ? undefined : one?.top
      return { ...asked, ranking: one && { ...one, top, other: top !== undefined && one.other } }
    }),
  )
  .map(({ at, ofDays, isCompared, ...rest }) => {
    const days = at.map((ms) => Temporal.Instant.fromEpochMilliseconds(firstMs + ms).toZonedDateTimeISO(rest.timeZone))
    const starts = days.map((one) => one.startOfDay().epochMilliseconds)
    const [fromMs, toMs] = ofDays
      ? [Math.min(...starts), Math.max(...starts) + (starts[0] === starts[1] ? quarterMs : 0)]
      : [firstMs + Math.min(...at), firstMs + Math.max(...at)]
    const span = { fromMs, toMs, timeZone: rest.timeZone, step: rest.step, previousMs: undefined }
    const comparison = readComparison(isCompared ? 'previous' : undefined, span, rest.ranking?.measure ?? 'cost', [])
    return { ...rest, fromMs, toMs, comparison }
  })

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

function plainSums(rows: readonly Decision[]) {
  const allowed = rows.filter(({ outcome }) => outcome === 'allow')
  const denied = rows.filter(({ outcome }) => outcome === 'deny')
  return {
    ...{ count: String(total(rows, counted)), allowed: String(total(allowed, counted)) },
    ...{ denied: String(total(denied, counted)), cost: String(total(allowed, units)) },
  }
}

/** The sums of a question's own span, and with a comparison those of the span before. */
function sumsOf(rows: readonly Decision[], { fromMs, comparison }: UsageQuery) {
  if (comparison === undefined) return plainSums(rows)
  const from = Math.floor(fromMs / quarterMs) * quarterMs
  const [now, before] = [plainSums(rows.filter(({ ms }) => ms >= from)), plainSums(rows.filter(({ ms }) => ms < from))]
  const [value, earlier] = [Number(now[comparison.measure]), Number(before[comparison.measure])]
  const previous = Object.fromEntries(Object.entries(before).map(([name, sum]) => [`previous_${name}`, sum]))
  return { ...now, ...previous, change: earlier === 0 ? null : (value - earlier) / Math.abs(earlier) }
}

/** Where the step of a decision begins, or of an earlier one the step that it is compared with. */
function comparedStart(ms: number, { fromMs, step, timeZone, comparison }: UsageQuery): string {
  const start = startOf(ms, step, timeZone)
  if (comparison === undefined || ms >= Math.floor(fromMs / quarterMs) * quarterMs) return start
  const { unit, count } = comparison.shift
  const moved = Temporal.Instant.from(start)
    .toZonedDateTimeISO(timeZone)
    .add({ [`${unit}s`]: count })
  return moved.toString({ timeZoneName: 'never', smallestUnit: 'second' })
}

/** The decisions that a question is about, as its reader sees them. */
function metBy(all: readonly Decision[], reach: readonly string[] | undefined, asked: UsageQuery): Decision[] {
  const { only, except, subjectPrefix = '', fromMs, toMs, comparison } = asked
  const floor = (ms: number) => Math.floor(ms / quarterMs) * quarterMs
  const to = Math.ceil(toMs / quarterMs) * quarterMs
  const from = floor(comparison?.fromMs ?? fromMs)
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
function topGroups(met: readonly Decision[], asked: UsageQuery, { measure, descending, top }: Ranking) {
  const { by } = asked
  const groups = [...Map.groupBy(met, (one) => JSON.stringify(by.map((name) => one[name])))]
  const ranked = groups.map(([names, rows]) => {
    const sum = BigInt(sumsOf(rows, asked)[measure])
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
function modelOf(met: readonly Decision[], asked: UsageQuery): UsageRow[] {
  const { by, step, toMs, comparison, ranking: ranked } = asked
  const top = ranked?.top === undefined ? undefined : topGroups(met, asked, ranked)
  const isOther = (one: Decision) => top !== undefined && !top.has(JSON.stringify(by.map((name) => one[name])))
  const shown = ranked?.other ? met : met.filter((one) => !isOther(one))
  const groupOf = (one: Decision) => ({
    ...(step === 'total' ? {} : { ts: comparedStart(one.ms, asked) }),
    ...(ranked?.other ? { other: isOther(one) } : {}),
    ...Object.fromEntries(by.map((name) => [name, isOther(one) ? '' : one[name]])),
  })
  const rows = [...Map.groupBy(shown, (one) => JSON.stringify(groupOf(one)))].map(([group, of]): UsageRow => {
    const names = new Set(of.map((one) => JSON.stringify(by.map((name) => one[name]))))
    return { ...JSON.parse(group), ...sumsOf(of, asked), ...(ranked?.other ? { groups: String(names.size) } : {}) }
  })
  const isWithin = ({ ts }: UsageRow) =>
    comparison === undefined || ts === undefined || Date.parse(ts) < Math.ceil(toMs / quarterMs) * quarterMs
  const keyOf = (row: UsageRow) => [
    ...(row.ts === undefined ? [] : [BigInt(Date.parse(row.ts))]),
    ...(ranked?.other ? [row.other ? 1n : 0n] : []),
    ...(ranked === undefined ? [] : [BigInt(row[ranked.measure]) * (ranked.descending ? -1n : 1n)]),
    ...by.map((name) => row[name] ?? ''),
  ]
  return rows.filter(isWithin).toSorted((a, b) => inOrder(keyOf(a), keyOf(b)))
}

/** Without rows that have nothing, as the one row of a question that has no groups and met nothing. */
const comparable = (rows: readonly UsageRow[]) =>
  rows
    .filter(({ count, cost, previous_count = '0', previous_cost = '0' }) =>
      [count, cost, previous_count, previous_cost].some((sum) => sum !== '0'),
    )
    .map(({ change: _, ...row }) => row)
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
      if (rows.length === model.length) expectChanges(rows, model)
      const at = Math.floor(rows.length / 2)
      const after = at === 0 ? undefined : placeOf(sortKeyOf(asked), { ...rows[at - 1] })
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
