import { Temporal } from 'temporal-polyfill'
import type { Measure } from './columns.ts'
import { type Stepped, stepStart, widened } from './fill.ts'
import { readTime } from './read-parameters.ts'

/** How far the steps of the compared span are from those they are compared with. */
export interface StepShift {
  readonly unit: 'second' | 'day' | 'month'
  readonly count: number
}

/** An earlier span that a question is compared with; it ends where the question's own begins, or before. */
export interface Comparison {
  readonly fromMs: number
  readonly toMs: number
  readonly shift: StepShift
  /** The sum whose change is told. */
  readonly measure: Measure
}

/** The span that is compared with an earlier one. */
export interface ComparedSpan extends Stepped {
  /** Where the period before begins; undefined for a span that is no period. */
  readonly previousMs: number | undefined
}

const zoned = (ms: number, timeZone: string) => Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)

/** Whole months or days of the calendar, if the span is some; else undefined. */
function calendarLength({ fromMs, toMs, timeZone }: ComparedSpan): Temporal.DurationLike | undefined {
  const [from, to] = [zoned(fromMs, timeZone), zoned(toMs, timeZone)]
  if (![from, to].every((one) => one.equals(one.startOfDay()))) return undefined
  const months = (to.year - from.year) * 12 + to.month - from.month
  if (months > 0 && from.add({ months }).equals(to)) return { months }
  return { days: from.toPlainDate().until(to.toPlainDate(), { largestUnit: 'days' }).days }
}

/** Where a span of the same length ends that begins then. */
function endMsFrom(firstMs: number, span: ComparedSpan): number {
  const length = calendarLength(span)
  if (length === undefined) return firstMs + span.toMs - span.fromMs
  return zoned(firstMs, span.timeZone).add(length).epochMilliseconds
}

function firstMsBefore(span: ComparedSpan): number {
  const { fromMs, toMs, timeZone, previousMs } = span
  if (previousMs !== undefined) return previousMs
  const length = calendarLength(span)
  if (length === undefined) return fromMs - (toMs - fromMs)
  return zoned(fromMs, timeZone).subtract(length).startOfDay().epochMilliseconds
}

/** From the step in which the earlier span begins to the one in which the later begins. */
function shiftOf(span: ComparedSpan, earlierMs: number): StepShift {
  const { fromMs, timeZone, step } = span
  const [earlier, later] = [zoned(earlierMs, timeZone).toPlainDate(), zoned(fromMs, timeZone).toPlainDate()]
  if (step === 'month') {
    return { unit: 'month', count: (later.year - earlier.year) * 12 + later.month - earlier.month }
  }
  if (step !== 'day' && step !== 'week') {
    const startMs = (ms: number) => (step === 'total' ? ms : stepStart(ms, span))
    return { unit: 'second', count: (startMs(fromMs) - startMs(earlierMs)) / 1_000 }
  }
  const start = (date: Temporal.PlainDate) => (step === 'day' ? date : date.subtract({ days: date.dayOfWeek - 1 }))
  return { unit: 'day', count: start(earlier).until(start(later), { largestUnit: 'days' }).days }
}

/**
 * Reads `compare`: `previous` is the span before of the same length, by the calendar where the question is about whole
 * days or months (March is compared with February); a time is where a span of that length begins, which ends before the
 * question's own. A span that still runs is compared with the same part of the earlier one. Both are of whole buckets,
 * so that they are as long. Undefined without it.
 */
export function readComparison(
  compare: string | undefined,
  { nowMs, bucketMs, ...given }: ComparedSpan & { readonly nowMs: number; readonly bucketMs: number },
  measure: Measure,
  problems: string[],
): Comparison | undefined {
  if (compare === undefined || given.fromMs >= given.toMs) return undefined
  // Of a span that still runs, what has passed of it.
  const isRunning = nowMs > given.fromMs && nowMs < given.toMs
  const soFar = isRunning ? { ...given, toMs: Math.ceil(nowMs / bucketMs) * bucketMs } : given
  const span = { ...soFar, ...widened(soFar, bucketMs) }
  if (compare === 'previous') {
    const fromMs = firstMsBefore({ ...given, ...widened(given, bucketMs) })
    const toMs = isRunning ? Math.min(span.fromMs, fromMs + span.toMs - span.fromMs) : span.fromMs
    return { fromMs, toMs, shift: shiftOf(span, fromMs), measure }
  }
  const firstMs = readTime('compare', compare, { timeZone: span.timeZone, nowMs }, problems)
  if (firstMs === undefined) return undefined
  const endMs = endMsFrom(firstMs, soFar)
  if (endMs > given.fromMs) {
    const iso = new Date(endMs).toISOString()
    problems.push(`compare: the period starting there ends at ${iso}, which is after from`)
  }
  const wholeMs = Math.floor(firstMs / bucketMs) * bucketMs
  const wholeEndMs = endMsFrom(wholeMs, span)
  // What follows at once may reach into the question's own span, now that both are wider.
  const toMs = Math.min(wholeEndMs, span.fromMs)
  const fromMs = wholeMs - (wholeEndMs - toMs)
  return { fromMs, toMs, shift: shiftOf(span, fromMs), measure }
}
