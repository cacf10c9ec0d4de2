import { askUsage, type UsageRow } from '@weir/clickhouse/usage-queries.ts'
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
  subject: ['acme', 'acme-2', 'bolt', "o'neil", 'b\\t{x:String}', 'größe'],
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
    adjustment: fc.integer({ min: -9, max: 9 }),
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

/** The answer by the promise of docs/usage.md, of the decisions themselves. */
function modelOf(all: readonly Decision[], reach: readonly string[] | undefined, asked: UsageQuery): UsageRow[] {
  const { only, except, subjectPrefix = '', fromMs, toMs, by, step, timeZone } = asked
  const [from, to] = [Math.floor(fromMs / quarterMs) * quarterMs, Math.ceil(toMs / quarterMs) * quarterMs]
  const seen = all.map((one) => (reach !== undefined && one.outcome === 'allow' ? { ...one, denied_by: '' } : one))
  const met = seen.filter(
    (one) =>
      (reach?.includes(one.subject) ?? true) &&
      one.ms >= from &&
      one.ms < to &&
      one.subject.startsWith(subjectPrefix) &&
      dimensions.every((name) => only[name]?.includes(one[name]) ?? true) &&
      dimensions.every((name) => !except[name]?.includes(one[name])),
  )
  const groupOf = (one: Decision) => ({
    ...(step === 'total' ? {} : { ts: startOf(one.ms, step, timeZone) }),
    ...Object.fromEntries(by.map((name) => [name, one[name]])),
  })
  const groups = Map.groupBy(met, (one) => JSON.stringify(groupOf(one)))
  return [...groups].map(([group, rows]) => {
    const sum = (of: readonly Decision[]) => String(of.reduce((total, { count }) => total + BigInt(count), 0n))
    const allowed = rows.filter(({ outcome }) => outcome === 'allow')
    const units = ({ cost, count, adjustment }: Decision) => BigInt(cost) * BigInt(count) + BigInt(adjustment)
    return {
      ...JSON.parse(group),
      count: sum(rows),
      allowed: sum(allowed),
      denied: sum(rows.filter(({ outcome }) => outcome === 'deny')),
      cost: String(allowed.reduce((total, one) => total + units(one), 0n)),
    }
  })
}

/** In one order, without rows that are nothing but zeros: a rollup may forget them when it is merged. */
const comparable = (rows: readonly UsageRow[]) =>
  rows
    .filter(({ count, cost }) => count !== '0' || cost !== '0')
    .map((row) => JSON.stringify(row, Object.keys(row).toSorted()))
    .toSorted()

let tables: Tables
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
      expect(comparable(await askUsage(tables.client, reach, asked))).toEqual(comparable(modelOf(all, own, asked)))
    }),
    { numRuns: questions },
  )
})
