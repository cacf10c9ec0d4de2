import type { Step, UsageDimension } from '@weir/api/query/columns.ts'
import type { Ranking } from '@weir/api/query/ranking.ts'
import type { UsageQuery } from '@weir/api/query/usage-query.ts'
import type { UsageRow } from '@weir/console/usage/usage-queries.ts'
import { Temporal } from 'temporal-polyfill'
import { type Decision, dimensions, parentsOf, quarterMs, type SomeReach } from './random-questions.ts'

/** Where the step of a time begins, as the console writes it. */
function startOf(ms: number, step: Step, timeZone: string): string {
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
  const length = step === 'hour' ? 3_600_000 : quarterMs
  const dayMs = at.startOfDay().epochMilliseconds
  const date = at.toPlainDate()
  const first =
    step === 'week' ? date.subtract({ days: date.dayOfWeek - 1 }) : step === 'month' ? date.with({ day: 1 }) : date
  const start =
    step === 'hour' || step === 'quarter_hour'
      ? Temporal.Instant.fromEpochMilliseconds(dayMs + Math.floor((ms - dayMs) / length) * length).toZonedDateTimeISO(
          timeZone,
        )
      : first.toZonedDateTime(timeZone)
  return start.toString({ timeZoneName: 'never', smallestUnit: 'second' })
}

const units = ({ cost, count, adjustment }: Decision) => BigInt(cost) * BigInt(count) + BigInt(adjustment)
const total = (of: readonly Decision[], amount: (one: Decision) => bigint) =>
  of.reduce((sum, one) => sum + amount(one), 0n)
const counted = ({ count, count_adjustment }: Decision) => BigInt(count + count_adjustment)

function plainSums(rows: readonly Decision[]) {
  const allowed = rows.filter(({ outcome }) => outcome === 'allow')
  const denied = rows.filter(({ outcome }) => outcome === 'deny')
  return {
    count: String(total(rows, counted)),
    allowed: String(total(allowed, counted)),
    denied: String(total(denied, counted)),
    cost: String(total(allowed, units)),
  }
}

/** The sums of a question's own span, and with a comparison those of the span before. */
export function sumsOf(rows: readonly Decision[], { fromMs, comparison }: UsageQuery) {
  if (comparison === undefined) return plainSums(rows)
  const from = Math.floor(fromMs / quarterMs) * quarterMs
  const [now, before] = [plainSums(rows.filter(({ ms }) => ms >= from)), plainSums(rows.filter(({ ms }) => ms < from))]
  const [value = 0, earlier = 0] = [now, before].map((sums) => Number(Reflect.get(sums, comparison.measure)))
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
  const shown = unit === 'second' ? moved : moved.startOfDay()
  return shown.toString({ timeZoneName: 'never', smallestUnit: 'second' })
}

/** A decision as its subject sees it: without limits in shadow, and without the ancestors of that subject. */
function shownOwn(one: Decision, reach: readonly string[]): Decision {
  const above = parentsOf(one)
  const parents = above.slice(0, above.findIndex((name) => reach.includes(name)) + 1)
  const denied_by = one.outcome === 'allow' ? '' : one.denied_by
  const met = denied_by === '' ? [] : [denied_by]
  const seen = { denied_by, met, parent: parents[0] ?? '', parents: JSON.stringify(parents) }
  return { ...one, ...seen, mode: 'enforce', reason: one.mode === 'shadow' ? 'ok' : one.reason }
}

const namesMet = ({ met }: Decision) => (met.length === 0 ? [''] : met)
/** What a decision has of a dimension. */
const valuesIn = (one: Decision, name: UsageDimension): readonly string[] =>
  name === 'met_limit' ? namesMet(one) : [one[name]]

/** The decisions that a question is about, as its reader sees them. */
export function metBy(all: readonly Decision[], reach: SomeReach, asked: UsageQuery): Decision[] {
  const { only, except, subjectPrefix = '', within, fromMs, toMs, comparison } = asked
  const decided = new Map(all.map((one) => [one.id, one]))
  const isOf = (names: readonly string[], { id }: Decision, hasTrees: boolean) => {
    const one = decided.get(id)
    return one !== undefined && [one.subject, ...(hasTrees ? parentsOf(one) : [])].some((name) => names.includes(name))
  }
  const floor = (ms: number) => Math.floor(ms / quarterMs) * quarterMs
  const to = Math.ceil(toMs / quarterMs) * quarterMs
  const isAsked = (ms: number) => ms >= floor(fromMs) && ms < to
  const isCompared = (ms: number) =>
    comparison !== undefined && ms >= floor(comparison.fromMs) && ms < floor(comparison.toMs)
  const seen = all.map((one) => {
    const { reason, mode, ip, met } = decided.get(one.corrects) ?? one
    const whole = { ...one, reason, mode, ip, met }
    return reach === undefined ? whole : shownOwn(whole, reach.subjects)
  })
  return seen.filter(
    (one) =>
      (reach === undefined || isOf(reach.subjects, one, reach.hasTrees)) &&
      (within === undefined || [one.subject, ...JSON.parse(one.parents)].some((name) => within.includes(name))) &&
      (isAsked(one.ms) || isCompared(one.ms)) &&
      one.subject.startsWith(subjectPrefix) &&
      dimensions.every((name) => valuesIn(one, name).some((value) => only[name]?.includes(value) ?? true)) &&
      dimensions.every((name) => !valuesIn(one, name).some((value) => except[name]?.includes(value))),
  )
}

const inOrder = (a: readonly (string | bigint | number)[], b: readonly (string | bigint | number)[]): number => {
  const at = a.findIndex((part, index) => part !== b[index])
  return at < 0 ? 0 : (a[at] ?? '') < (b[at] ?? '') ? -1 : 1
}

/** What a group is sorted by. Changes as they are shown, from nothing last. */
function rankOf(row: Omit<UsageRow, 'ts'>, measure: Ranking['measure'], descending: boolean): bigint | number {
  if (measure !== 'change') return BigInt(Reflect.get(row, measure)) * (descending ? -1n : 1n)
  const change = row.change ?? null
  if (change === null) return Number.POSITIVE_INFINITY
  const [scaled, half] = [change * 1e4, Math.abs((change * 1e4) % 1) === 0.5]
  const rounded = half ? 2 * Math.round(scaled / 2) : Math.round(scaled)
  return (descending ? -rounded : rounded) / 1e4 + 0
}

/** The groups that are first over the whole span. */
function topGroups(met: readonly Decision[], asked: UsageQuery, { measure, descending, top }: Ranking) {
  const { by } = asked
  const groups = [...Map.groupBy(met, (one) => JSON.stringify(by.map((name) => one[name])))]
  const ranked = groups.map(([names, rows]) => {
    return { names, key: [rankOf(sumsOf(rows, asked), measure, descending), ...(JSON.parse(names) as string[])] }
  })
  return new Set(
    ranked
      .toSorted((a, b) => inOrder(a.key, b.key))
      .slice(0, top)
      .map(({ names }) => names),
  )
}

/** The rows of an answer by the promise of docs/usage.md, of the decisions themselves, in order. */
export function modelOf(all: readonly Decision[], asked: UsageQuery): UsageRow[] {
  const { by, step, toMs, comparison, ranking: ranked } = asked
  const isByLimit = by.includes('met_limit')
  const met = isByLimit ? all.flatMap((one) => namesMet(one).map((met_limit) => ({ ...one, met_limit }))) : all
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
    ...(ranked === undefined ? [] : [rankOf(row, ranked.measure, ranked.descending)]),
    ...by.map((name) => row[name] ?? ''),
  ]
  return rows.filter(isWithin).toSorted((a, b) => inOrder(keyOf(a), keyOf(b)))
}

/** Without rows that have nothing, as the one row of a question that has no groups and met nothing. */
export const comparable = (rows: readonly UsageRow[]) =>
  rows
    .filter(({ count, cost, previous_count = '0', previous_cost = '0' }) =>
      [count, cost, previous_count, previous_cost].some((sum) => sum !== '0'),
    )
    .map(({ change: _, ...row }) => row)
    .map((row) => JSON.stringify(row, Object.keys(row).toSorted()))

/** The rows of an answer with `fill=zero`, complete until then. */
export function filledModel(all: readonly Decision[], asked: UsageQuery, completeMs: number): object[] {
  const { by, step, timeZone, fromMs, toMs } = asked
  const rows = modelOf(all, asked)
  const [from, to] = [Math.floor(fromMs / quarterMs) * quarterMs, Math.ceil(toMs / quarterMs) * quarterMs]
  const quarters = Array.from({ length: (to - from) / quarterMs }, (_, at) => from + at * quarterMs)
  const steps = [...new Set(quarters.map((ms) => startOf(ms, step, timeZone)))]
  const keyOf = (row: Partial<UsageRow>) => JSON.stringify(by.map((name) => row[name]))
  const groups = by.length === 0 ? ['[]'] : [...new Set(rows.map(keyOf))]
  const found = new Map(rows.map((row) => [`${row.ts} ${keyOf(row)}`, row]))
  return steps.flatMap((ts, at) => {
    const endMs = at + 1 < steps.length ? Date.parse(steps[at + 1] ?? '') : to
    const empty = endMs <= completeMs ? '0' : null
    const filled = groups.map((group) => {
      const names = Object.fromEntries(by.map((name, index) => [name, JSON.parse(group)[index]]))
      const sums = { count: empty, allowed: empty, denied: empty, cost: empty }
      return found.get(`${ts} ${group}`) ?? { ts, ...names, ...sums }
    })
    const namesOf = (row: object) => by.map((name) => String(Reflect.get(row, name)))
    return filled.toSorted((a, b) => inOrder(namesOf(a), namesOf(b)))
  })
}
