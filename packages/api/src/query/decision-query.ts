import { type DecisionDimension, decisionDimensions } from './columns.ts'
import { decisionParameters, streamParameters } from './parameters.ts'
import {
  type GivenParameters,
  listOf,
  type Parsed,
  readFilters,
  readNumber,
  readParameters,
  readSpan,
  type Values,
} from './read-parameters.ts'

/** Which decisions are meant, whenever they were made. */
export interface DecisionFilter {
  readonly only: Values<DecisionDimension>
  readonly except: Values<DecisionDimension>
  /** Only subjects that begin so; undefined for all. */
  readonly subjectPrefix: string | undefined
  /** Only requests that cost at least so many units. */
  readonly minCost: number
}

/** One question for decisions themselves. */
export interface DecisionQuery extends DecisionFilter {
  /** First instant that counts, and the first that no longer does. */
  readonly fromMs: number
  readonly toMs: number
  /** Only those whose upstream answered with one of these; empty for all. */
  readonly statuses: readonly number[]
  /** Only those that were corrected later. */
  readonly corrected: boolean
  /** Only those that hold units and were not settled. */
  readonly unsettled: boolean
  /** The rows of a page. */
  readonly limit: number
}

const hourMs = 3_600_000
/** Raw rows are read, a million a day and more: longer only where a subject, a key or an address leaves few. */
const [spanMaxMs, narrowSpanMaxMs] = [24 * hourMs, 31 * 24 * hourMs]

/** Reads what decisions are filtered by, with what is wrong about it. */
function readDecisionFilter(
  given: GivenParameters,
  params: Readonly<Record<string, string | undefined>>,
  problems: string[],
): DecisionFilter {
  return {
    only: readFilters(decisionDimensions, '', given, problems),
    except: readFilters(decisionDimensions, 'not_', given, problems),
    subjectPrefix: params.subject_prefix,
    minCost: Number(params.min_cost ?? 0),
  }
}

/** Reads which decisions a stream is about. All problems together. */
export function parseStreamQuery(given: GivenParameters) {
  const problems: string[] = []
  const params = readParameters(streamParameters, given, problems)
  const filter = readDecisionFilter(given, params, problems)
  if (problems.length > 0) return { kind: 'problems', problems } as const
  return { kind: 'query', filter, isSumsOnly: params.of === 'sums' } as const
}

/**
 * Reads a question for decisions; the default is the last hour. `isNarrow` says that the caller reaches some subjects
 * only. All problems together.
 */
export function parseDecisionQuery(given: GivenParameters, nowMs: number, isNarrow: boolean): Parsed<DecisionQuery> {
  const problems: string[] = []
  const params = readParameters(decisionParameters, given, problems)
  const filter = readDecisionFilter(given, params, problems)
  const { fromMs, toMs } = readSpan(params, { nowMs, spanMs: hourMs }, problems)
  const { subject, key_id: key, ip } = filter.only
  const isNamed = isNarrow || [subject, key, ip].some((values) => values !== undefined)
  if (toMs - fromMs > (isNamed ? narrowSpanMaxMs : spanMaxMs)) {
    const words = isNamed ? '31 days apart' : '24 hours apart, 31 days if subject, key_id or ip is given'
    problems.push(`from and to may be at most ${words}`)
  }
  const status = (value: string) => readNumber({ name: 'status', value, min: 100, max: 999 }, problems)
  const statuses = [...new Set(listOf(Object.hasOwn(given, 'status') ? given.status : undefined).map(status))]
  const { corrected, unsettled, limit = '100' } = params
  const flags = { corrected: corrected === 'true', unsettled: unsettled === 'true' }
  if (problems.length > 0) return { kind: 'problems', problems: [...new Set(problems)] }
  return { kind: 'query', query: { ...filter, fromMs, toMs, statuses, ...flags, limit: Number(limit) } }
}

/** A decision as its reader sees it. */
type SeenColumns = Readonly<Record<DecisionDimension, string>> & { readonly cost: number }

/** Returns whether a decision is one of those that are meant. */
export function isMeant({ only, except, subjectPrefix, minCost }: DecisionFilter, seen: SeenColumns): boolean {
  if (seen.cost < minCost || !seen.subject.startsWith(subjectPrefix ?? '')) return false
  return decisionDimensions.every((name) => {
    const value = seen[name]
    return only[name]?.includes(value) !== false && except[name]?.includes(value) !== true
  })
}
