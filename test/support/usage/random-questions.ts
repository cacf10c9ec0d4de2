import { orders, rollupDimensions, type Step, type UsageDimension } from '@weir/api/query/columns.ts'
import type { Ranking } from '@weir/api/query/ranking.ts'
import { parseUsageQuery, type UsageQuery } from '@weir/api/query/usage-query.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import fc from 'fast-check'
import { Temporal } from 'temporal-polyfill'

/**
 * Clocks go on by an hour on the 28th, in Beirut at midnight, and back on the fourth of April: in Santiago by an hour,
 * on Lord Howe by half of one.
 */
const firstMs = Date.parse('2027-03-27T00:00:00Z')
/** Sums are of whole quarter hours. */
export const quarterMs = 900_000
const spanMs = 9 * 86_400_000

const values = {
  subject: ['acme', 'acme-2', 'bolt', "o'neil", 'b\\t{x:String}', 'größe', '=1+1"\r\n,', "-'x"],
  key_id: ['', 'a-1', 'b-1'],
  plan: ['free', 'top'],
  route: ['POST /v1/search', 'GET /v1/users/:id', ''],
  method: ['GET', 'POST', ''],
  outcome: ['allow', 'deny'],
  denied_by: ['', 'minute', 'day'],
  parent: ['', 'bolt', 'acme'],
  parents: ['[]', '["bolt","acme"]', '["acme"]'],
  reason: ['ok', 'limit'],
  mode: ['enforce', 'shadow'],
  ip: ['', '192.0.2.1', '2001:db8::/64'],
  met_limit: ['', 'minute', 'day', 'per-ip'],
} as const satisfies Record<UsageDimension, readonly string[]>
/** What a question may be about. */
export const dimensions = Object.keys(values) as UsageDimension[]
type PlainDimension = Exclude<UsageDimension, 'met_limit'>
const plainDimensions = dimensions.filter((name): name is PlainDimension => name !== 'met_limit')

/** One decision, or a correction of one. */
export interface Decision extends Record<PlainDimension, string> {
  readonly id: string
  /** The decision that a correction corrects, where there is one. */
  readonly corrects: string
  /** The limits that it met. */
  readonly met: readonly string[]
  /** The limit of a row of its own: one that it met, or none. */
  readonly met_limit?: string
  readonly ms: number
  readonly cost: number
  /** 0 for a correction; many for a flood of equal refusals. */
  readonly count: number
  readonly adjustment: number
  readonly count_adjustment: number
}

type Drawn = Omit<Decision, 'id' | 'corrects'>
/** A decision without its id, as `withIds` takes it. */
export const decision: fc.Arbitrary<Drawn> = fc
  .record({
    ...(Object.fromEntries(plainDimensions.map((name) => [name, fc.constantFrom<string>(...values[name])])) as Record<
      PlainDimension,
      fc.Arbitrary<string>
    >),
    met: fc.subarray(values.met_limit.slice(1)),
    ms: fc.integer({ min: 0, max: spanMs - 1 }).map((after) => firstMs + after),
    cost: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(1_000_000_000)),
    count: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(9_200_000_000) }),
    // So various that those of a group hardly cancel out: a rollup may forget what is nothing but zeros.
    adjustment: fc.integer({ min: -9_000_000, max: 9_000_000 }).filter((units) => units !== 0),
    count_adjustment: fc.nat(99).map((taken) => -taken),
    isCorrection: fc.nat(9).map((one) => one === 0),
  })
  .map(({ isCorrection, ...one }) => ({ ...one, isCorrection, parents: JSON.stringify(parentsOf(one)) }))
  .map(({ isCorrection, ...one }) =>
    isCorrection ? { ...one, outcome: 'allow', count: 0 } : { ...one, adjustment: 0, count_adjustment: 0 },
  )

/**
 * Decisions with their ids. Every other correction is of a decision before it: it has caller, route and time of that,
 * and nothing else. The others are of decisions that are not there.
 */
export function withIds(all: readonly Drawn[]): Decision[] {
  const idOf = (at: number) => `01934e2a-5c00-7000-8000-${String(at).padStart(12, '0')}`
  return all.map((one, at) => {
    if (one.count > 0) return { ...one, id: idOf(at), corrects: noId }
    const corrected = at % 2 === 0 ? all.findIndex(({ count }, index) => count > 0 && index > at / 2) : -1
    const { ms, subject, key_id, plan, route, method, parent, parents } = all[corrected] ?? one
    const own = {
      ...one,
      ms,
      subject,
      key_id,
      plan,
      route,
      method,
      parent,
      parents,
      reason: 'ok',
      mode: 'enforce',
      ip: '',
      met: [],
    }
    return { ...own, id: idOf(at), corrects: corrected < 0 ? idOf(999_999) : idOf(corrected) }
  })
}
const noId = '00000000-0000-0000-0000-000000000000'

/** Whom a decision's subject was below: a team is below acme. */
export const parentsOf = ({ parent }: Pick<Decision, 'parent'>): readonly string[] =>
  parent === '' ? [] : parent === 'acme' ? ['acme'] : [parent, 'acme']

/** A decision as a row of weir.decisions. */
export const insertedRow = ({ ms, met, parent, ...row }: Decision) => ({
  ...row,
  parents: parentsOf({ parent }),
  ts: new Date(ms).toISOString().replace('T', ' ').replace('Z', ''),
  limits: met.map((name) => ({ name, size: 1, used: 1, remaining: 0, reset_ms: 1, by: {} })),
})

/** Half of the questions are about what rollups have. */
const someDimensions = (maxLength: number) =>
  fc.oneof(fc.subarray<UsageDimension>([...rollupDimensions], { maxLength }), fc.subarray(dimensions, { maxLength }))
const valuesOf = (name: UsageDimension) => fc.subarray<string>([...values[name], 'none'], { minLength: 1 })
const filter = someDimensions(2).chain((names) =>
  fc.record(Object.fromEntries(names.map((name) => [name, valuesOf(name)]))),
)

const ranking = fc.record({
  measure: fc.constantFrom(...orders),
  descending: fc.boolean(),
  top: fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 12 })),
  other: fc.boolean(),
})

/** A question that may be asked. */
export const question: fc.Arbitrary<UsageQuery> = fc
  .record({
    only: fc.oneof(fc.constant({}), filter),
    except: fc.oneof(fc.constant({}), filter),
    subjectPrefix: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      fc.constantFrom('', 'acme', 'b', "o'", '%'),
    ),
    within: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      fc.constantFrom(['acme'], ['bolt', 'acme-2'], ['none']),
    ),
    at: fc.tuple(fc.nat(spanMs), fc.nat(spanMs)).filter(([a, b]) => a !== b),
    by: someDimensions(4),
    step: fc.constantFrom<Step>('quarter_hour', 'hour', 'day', 'week', 'month', 'total', 'total'),
    timeZone: fc.constantFrom(
      'utc',
      'Asia/Kathmandu',
      'europe/berlin',
      'Pacific/Apia',
      'asia/beirut',
      'America/Santiago',
      'Australia/Lord_Howe',
    ),
    ofDays: fc.boolean(),
    /** The span before, or one that begins so many quarter hours before that. */
    compared: fc.oneof(fc.constant(undefined), fc.constant('previous' as const), fc.nat(200)),
  })
  .chain((asked) =>
    fc.oneof(fc.constant(undefined), ranking).map((one): Omit<UsageQuery, 'fromMs' | 'toMs'> & typeof asked => {
      const top = asked.by.length === 0 ? undefined : one?.top
      return { ...asked, ranking: one && { ...one, top, other: top !== undefined && one.other } }
    }),
  )
  .map(({ at, ofDays, compared, within, ...rest }) => {
    const days = at.map((ms) => Temporal.Instant.fromEpochMilliseconds(firstMs + ms).toZonedDateTimeISO(rest.timeZone))
    const starts = days.map((one) => one.startOfDay().epochMilliseconds)
    const [fromMs, toMs] = ofDays
      ? [Math.min(...starts), Math.max(...starts) + (starts[0] === starts[1] ? quarterMs : 0)]
      : [firstMs + Math.min(...at), firstMs + Math.max(...at)]
    const iso = (ms: number) => new Date(ms).toISOString()
    const first = (quarters: number) => iso(2 * fromMs - toMs - quarters * quarterMs)
    const compare = typeof compared === 'number' ? first(compared) : compared
    const { measure = 'cost' } = rest.ranking ?? {}
    const span = { from: iso(fromMs), to: iso(toMs), step: rest.step, time_zone: rest.timeZone }
    const ask = (more: object) => parseUsageQuery({ ...span, ...more }, { nowMs: toMs })
    const order = `-${measure === 'change' ? 'cost' : measure}`
    const [with_, without] = [ask({ order, ...(compare === undefined ? {} : { compare }) }), ask({})]
    const parsed = with_.kind === 'query' ? with_ : without
    if (parsed.kind === 'problems') throw new Error(parsed.problems.join('; '))
    const { comparison } = parsed.query
    // Only what is compared has a change.
    const isChange = measure === 'change' && comparison === undefined
    const ranking: Ranking | undefined = rest.ranking && { ...rest.ranking, measure: isChange ? 'cost' : measure }
    const { timeZone } = parsed.query
    return {
      ...rest,
      ...(within && { within }),
      ranking,
      timeZone,
      fromMs: parsed.query.fromMs,
      toMs: parsed.query.toMs,
      comparison,
    }
  })

/** Subjects that a reader is limited to, with their trees or without; undefined for none. */
export const someReach = fc.oneof(
  fc.constant(undefined),
  fc.record({ subjects: fc.subarray<string>([...values.subject]), hasTrees: fc.boolean() }),
)
/** What a reader is limited to. */
export type SomeReach = typeof someReach extends fc.Arbitrary<infer One> ? One : never
/** The same, as the console has it. */
export const reachOf = (own: SomeReach): Reach => {
  if (own === undefined) return Reach.everybody
  return own.hasTrees ? Reach.ofTrees(own.subjects, () => false) : Reach.of(own.subjects)
}
