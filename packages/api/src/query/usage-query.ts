import { didYouMean } from '@weir/core/suggest.ts'
import type { TProperties } from 'typebox'
import { type AnswerForm, readForm } from './answer-form.ts'
import {
  type OutcomeDimension,
  outcomeDimensions,
  querySteps,
  rawDimensions,
  type Step,
  type UsageDimension,
  usageDimensions,
} from './columns.ts'
import { type Comparison, readComparison } from './comparison.ts'
import { readFill, widened } from './fill.ts'
import { costParameters, outcomeParameters } from './parameters.ts'
import { type Ranking, readRanking } from './ranking.ts'
import { type GivenParameters, readFilters, readParameters, readSpan, type Values } from './read-parameters.ts'
import { type MonthCalendar, readPeriod } from './read-period.ts'
import { readPrice } from './read-price.ts'

/** One query of the rollups: what, by whom and when. */
export interface RollupQuery<Dimension extends string> {
  /** Only rows with one of the values of each dimension that is there. */
  readonly only: Values<Dimension>
  /** No rows with one of these values. */
  readonly except: Values<Dimension>
  /** Only subjects that begin so; undefined for all. */
  readonly subjectPrefix: string | undefined
  /** Only these subjects and those that were below one of them; absent for all. */
  readonly within?: readonly string[] | undefined
  /** Only groups whose name in the first column of `by` begins so; absent for all. */
  readonly namePrefix?: string
  /** First instant that counts, and the first that no longer does: those of whole buckets of a rollup. */
  readonly fromMs: number
  readonly toMs: number
  readonly by: readonly Dimension[]
  readonly step: Step
  /** IANA zone in which hours, days, weeks and months begin. */
  readonly timeZone: string
  /** The span that sums are compared with; absent for none. */
  readonly comparison?: Comparison | undefined
  /** How groups are ranked; absent for rows in order of time and names. */
  readonly ranking?: Ranking | undefined
  /** Whether every group has a row of each step. */
  readonly isFilled?: boolean
  /** Whether rows have a price; only those of usage can. */
  readonly isPriced?: boolean
}

/** A query that was read, or every problem of its parameters. */
export type ParsedQuery<Dimension extends string> =
  | { readonly kind: 'query'; readonly query: RollupQuery<Dimension>; readonly form: AnswerForm }
  | { readonly kind: 'problems'; readonly problems: readonly string[] }

/** What a kind of query can ask for. */
interface Askable<Dimension extends string> {
  readonly dimensions: readonly Dimension[]
  /** Those that only the decisions themselves have. */
  readonly rawDimensions: readonly Dimension[]
  /** Whether there are rows by the minute. */
  readonly hasMinutes: boolean
  /** What it takes, and what each may be. */
  readonly parameters: TProperties
  /** What `dimensions` are in messages; by default they themselves. */
  readonly shownAs?: readonly string[]
  /** The sum that a ranking and a comparison are about unless they name another one; `cost` by default. */
  readonly amount?: 'cost' | 'quantity'
}

const dayMs = 86_400_000
/** More minutes than this in one answer are a download, not a query. */
const minuteSpanMaxMs = 7 * dayMs
/** Decisions that are read one by one, of some subjects, keys or addresses: 31 million of a busy one. */
const rawSpanMaxMs = 31 * dayMs
/** And of everybody: as many of a thousand busy ones. */
const wideSpanMaxMs = dayMs
/** As infra/clickhouse/migrations keeps minutes; before that, some are there and some are not. */
const minutesKeptMs = 35 * dayMs

/** Columns of one answer: each multiplies its groups. */
const byMax = 4
/** The steps of a query; adds what is wrong about minutes. */
function readStep(
  text = 'hour',
  { hasMinutes, fromMs, toMs, nowMs }: Record<'fromMs' | 'toMs' | 'nowMs', number> & { readonly hasMinutes: boolean },
  problems: string[],
): Step | undefined {
  if (text === 'minute' && hasMinutes && toMs - fromMs > minuteSpanMaxMs)
    problems.push('step=minute takes at most 7 days')
  if (text === 'minute' && hasMinutes && fromMs < nowMs - minutesKeptMs)
    problems.push('step=minute reaches back 35 days')
  return querySteps.find((one) => one === text)
}

/** Adds what is wrong with a query that decisions themselves answer. */
function checkRaw(
  { only, fromMs, toMs }: { readonly only: Values<string>; readonly fromMs: number; readonly toMs: number },
  { raw, isNarrow }: { readonly raw: readonly string[]; readonly isNarrow: boolean },
  problems: string[],
): void {
  if (raw.length === 0) return
  const names = `${raw.join(', ')}: only the decisions themselves have`
  const narrow = isNarrow || [only.subject, only.key_id, only.ip].some((values) => values !== undefined)
  if (!narrow && toMs - fromMs > wideSpanMaxMs) {
    problems.push(`${names} it, so name a subject, a key_id or an ip, or ask for at most 24 hours`)
  }
  if (toMs - fromMs > rawSpanMaxMs) problems.push(`${names} it, so from and to may be at most 31 days apart`)
}

/** When a query is asked, and about whose rows. */
export interface AskedAt {
  readonly nowMs: number
  /** Whether the caller reads the rows of some subjects only. */
  readonly isNarrow?: boolean
  /** Months of the subject that is asked about; undefined unless there is exactly one. */
  readonly calendar?: MonthCalendar | undefined
}

/**
 * Reads a query from query parameters; defaults are the last 24 hours, by hour, in UTC. All problems together, after
 * those that are known already.
 */
export function parseQuery<Dimension extends string>(
  { dimensions, rawDimensions, parameters, hasMinutes, shownAs = dimensions, amount = 'cost' }: Askable<Dimension>,
  given: GivenParameters,
  { nowMs, isNarrow = false, calendar }: AskedAt,
  known: readonly string[] = [],
): ParsedQuery<Dimension> {
  const problems = [...known]
  const params = readParameters(parameters, given, problems)
  const only = readFilters(dimensions, '', given, problems)
  const except = readFilters(dimensions, 'not_', given, problems)
  const { within } = readFilters(['within'], '', given, problems)
  const period = readPeriod(params, { nowMs, calendar }, problems)
  const span = readSpan(params, { nowMs, spanMs: dayMs }, problems)
  const { fromMs, toMs } = period ?? span
  const timeZone = params.time_zone === undefined ? (period ?? span).timeZone : span.timeZone
  const step = readStep(params.step, { hasMinutes, fromMs, toMs, nowMs }, problems)

  const names = (params.by ?? '').split(',').filter((name) => name !== '')
  const by = dimensions.filter((dimension) => names.includes(dimension))
  const unknown = names.filter((name) => !dimensions.some((dimension) => dimension === name))
  if (unknown.length > 0)
    problems.push(
      `by takes ${shownAs.join(', ')}, but has ${unknown.join(', ')}${didYouMean(unknown[0] ?? '', dimensions)}`,
    )

  const raw = rawDimensions.filter((name) => by.includes(name) || name in only || name in except)
  checkRaw({ only, fromMs, toMs }, { raw, isNarrow }, problems)
  if (by.length > byMax) problems.push(`by has ${by.length} columns; at most ${byMax} are taken`)
  const ranking = readRanking(params, by, problems, amount)
  const measure = ranking?.measure ?? amount
  const compared = { nowMs, fromMs, toMs, timeZone, step: step ?? 'total', previousMs: period?.previousMs }
  const bucketMs = step === 'minute' ? 60_000 : 900_000
  const comparison = readComparison(
    params.compare,
    { ...compared, bucketMs },
    measure === 'change' ? amount : measure,
    problems,
  )
  const form = readForm(params, problems)
  const isAskable = step !== undefined && fromMs < toMs
  const isFilled = readFill(params, isAskable ? { fromMs, toMs, step, timeZone } : undefined, problems)
  const isPriced = readPrice(params.price, { by, step, only, except, top: params.top, format: form.format }, problems)

  if (problems.length > 0 || step === undefined) return { kind: 'problems', problems }
  return {
    kind: 'query',
    query: {
      only,
      except,
      subjectPrefix: params.subject_prefix,
      ...widened({ fromMs, toMs }, bucketMs),
      by,
      step,
      timeZone,
      ranking,
      comparison,
      ...(within ? { within } : {}),
      ...(isPriced ? { isPriced } : {}),
      ...(isFilled ? { isFilled } : {}),
    },
    form,
  }
}

/** A query of usage: who used what, when. */
export type UsageQuery = RollupQuery<UsageDimension>

/** Reads a query of usage from query parameters. */
export function parseUsageQuery(given: GivenParameters, at: AskedAt): ParsedQuery<UsageDimension> {
  const isOfUnits = (name: string) => /^(?:not_)?(?:unit|basis|meter|model|dimension\..*)$/.test(name)
  const asked = Object.fromEntries(Object.entries(given).filter(([name]) => !isOfUnits(name)))
  const names = typeof given.by === 'string' ? given.by.split(',') : []
  if (names.some(isOfUnits)) asked.by = names.filter((name) => !isOfUnits(name)).join()
  const ofUnits = [...Object.keys(given), ...names.map((name) => `by=${name}`)].filter((name) =>
    isOfUnits(name.replace('by=', '')),
  )
  const known = ofUnits.map((name) => `${name} needs unit`)
  const askable = { dimensions: usageDimensions, rawDimensions, parameters: costParameters, hasMinutes: true }
  return parseQuery(askable, asked, at, known)
}

/** A query of outcomes: how upstreams answered whom, when. */
export type OutcomeQuery = RollupQuery<OutcomeDimension>

/** Reads a query of outcomes from query parameters. */
export const parseOutcomeQuery = (given: GivenParameters, at: AskedAt): ParsedQuery<OutcomeDimension> =>
  parseQuery(
    { dimensions: outcomeDimensions, rawDimensions: [], parameters: outcomeParameters, hasMinutes: false },
    given,
    at,
  )
