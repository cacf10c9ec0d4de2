import { refuses } from '../limits/exceeding.ts'
import { isOfOneSubject, type Limit } from '../limits/limit.ts'
import {
  type Interval,
  type IntervalParts,
  type MinuteDemand,
  mostAdmitted,
  refusedBetween,
} from './refused-between.ts'

/** What one subject asked for in one minute, alike in everything that a rollup tells apart. */
export interface UsageMinute {
  /** When the minute began. */
  readonly ms: number
  /** 1; more for a longer time ahead of the span that is asked about. */
  readonly minutes: number
  readonly keyId: string
  readonly route: string
  readonly method: string
  /** The limits that decide these requests. */
  readonly limits: readonly Limit[]
  readonly count: number
  /** Of all of them, corrections included. */
  readonly units: number
  /** The limit that refused them then; empty for none. */
  readonly deniedBy: string
  /** Each request says its own cost. */
  readonly costsDiffer: boolean
}

/** Why a limit's refusals cannot be known from rollups; undefined if they can, within bounds. */
export function whyNotEstimated(limit: Limit): 'shared' | 'delay' | undefined {
  if (!isOfOneSubject(limit.by)) return 'shared'
  return limit.mode === 'enforce' && limit.onExceed.kind === 'delay' ? 'delay' : undefined
}

/** What is known of one limit's refusals, then and by other limits. */
export interface EstimatedLimit extends Interval {
  readonly before: number
}

/** What other limits would have made of one subject's requests. */
export interface SubjectEstimate {
  /** By name: the limits that refuse, or refused then. */
  readonly limits: ReadonlyMap<string, EstimatedLimit>
  readonly total: EstimatedLimit
  /** Decisions that it is about. */
  readonly count: number
}

/** The demand of one count of a limit. */
interface Series {
  readonly limit: Limit
  readonly minutes: MinuteDemand[]
  /** Requests in the span that cost more than the limit ever has. */
  never: number
}

/** What came in the same minute, together. */
function* byMinute(minutes: Iterable<UsageMinute>): Iterable<readonly UsageMinute[]> {
  let own: UsageMinute[] = []
  for (const minute of minutes) {
    if (own[0] !== undefined && own[0].ms !== minute.ms) {
      yield own
      own = []
    }
    own.push(minute)
  }
  yield own
}

const rollupParts: readonly string[] = ['subject', 'key', 'route', 'method']

/** Where the minute counts, as far as rollups know: counts by addresses and the like are one. */
function seriesName({ name, by }: Limit, { keyId, route, method }: UsageMinute): string {
  const values: Readonly<Record<string, string>> = { key: keyId, route, method }
  return [name, ...by.map(({ kind }) => values[kind] ?? '')].join('\n')
}

/** The most units that the limits which all of these requests meet admit together. */
function mostCharged(minutes: readonly UsageMinute[]): number {
  const [first, ...others] = minutes
  if (first === undefined) return 0
  const ofSubject = ({ by }: Limit) => by.every(({ kind }) => kind === 'subject')
  const all = first.limits.filter((limit) => refuses(limit) && whyNotEstimated(limit) === undefined && ofSubject(limit))
  const common = all.filter((limit) => others.every(({ limits }) => limits.includes(limit)))
  return Math.min(...common.map((limit) => mostAdmitted(limit, first.minutes)))
}

function addDemand(
  series: Series,
  { ms, count, units: written, costsDiffer }: UsageMinute,
  fromMs: number,
  charged: number,
): void {
  // A correction may stand alone in its minute.
  const units = Math.max(0, written)
  if (count === 0 || (units === 0 && series.limit.blockMs === 0)) return
  const isEven = units % count === 0 && !(costsDiffer && count > 1)
  if (isEven && units / count > series.limit.capacity) {
    if (ms >= fromMs) series.never += count
    return
  }
  // Where the costs of a minute differ, one of them may be nearly all.
  const costMax = isEven ? units / count : units
  const last = series.minutes.at(-1)
  if (last?.ms !== ms) series.minutes.push({ ms, count, units, costMax, most: Math.min(units, charged) })
  else {
    const sum = { count: last.count + count, units: last.units + units, costMax: Math.max(last.costMax, costMax) }
    series.minutes[series.minutes.length - 1] = { ms, ...sum, most: Math.min(sum.units, charged) }
  }
}

const sum = (numbers: Iterable<number>) => [...numbers].reduce((all, one) => all + one, 0)

/** Refusals by each limit in all of its counts, whichever other limit would have refused the same request. */
function boundsOf(all: Iterable<Series>, parts: IntervalParts): ReadonlyMap<string, Interval> {
  const bounds = new Map<string, Interval>()
  for (const { limit, minutes, never } of all) {
    const isKnown = limit.by.every(({ kind }) => rollupParts.includes(kind))
    const { atLeast, atMost } = refusedBetween(limit, minutes, parts)
    const known = bounds.get(limit.name) ?? { atLeast: 0, atMost: 0 }
    bounds.set(limit.name, {
      atLeast: known.atLeast + never + (isKnown ? atLeast : 0),
      atMost: known.atMost + never + atMost,
    })
  }
  return bounds
}

/**
 * Says within which bounds the limits refuse a subject's requests. The minutes ascend, and begin early enough for the
 * counts that run at `fromMs`. What a limit refused then whose refusals cannot be estimated, it refuses again.
 */
export function estimateSubject(minutes: Iterable<UsageMinute>, parts: IntervalParts): SubjectEstimate {
  const { fromMs } = parts
  const [series, then] = [new Map<string, Series>(), new Map<string, number>()]
  let [count, again] = [0, 0]
  for (const minute of byMinute(minutes)) {
    const left: UsageMinute[] = []
    for (const one of minute) {
      const { ms, deniedBy, limits } = one
      const isAgain = limits.some((limit) => limit.name === deniedBy && refuses(limit) && whyNotEstimated(limit))
      if (!isAgain) left.push(one)
      if (ms < fromMs) continue
      count += one.count
      if (isAgain) again += one.count
      if (deniedBy !== '') then.set(deniedBy, (then.get(deniedBy) ?? 0) + one.count)
    }
    const charged = mostCharged(left)
    for (const one of left) {
      for (const limit of one.limits.filter((limit) => refuses(limit) && whyNotEstimated(limit) === undefined)) {
        const name = seriesName(limit, one)
        const known = series.get(name) ?? { limit, minutes: [], never: 0 }
        series.set(name, known)
        addDemand(known, one, fromMs, charged)
      }
    }
  }
  const bounds = boundsOf(series.values(), parts)
  const mostOfAll = sum(bounds.values().map(({ atMost }) => atMost))
  const limits = new Map<string, EstimatedLimit>()
  for (const name of new Set([...then.keys(), ...bounds.keys()])) {
    const { atLeast, atMost } = bounds.get(name) ?? { atLeast: 0, atMost: 0 }
    // What others may have refused before it is not surely this one's.
    limits.set(name, { before: then.get(name) ?? 0, atLeast: Math.max(0, atLeast - (mostOfAll - atMost)), atMost })
  }
  const leastOfAll = Math.max(0, ...bounds.values().map(({ atLeast }) => atLeast))
  const total = { atLeast: again + leastOfAll, atMost: Math.min(count, again + mostOfAll) }
  return { limits, total: { before: sum(then.values()), ...total }, count }
}
