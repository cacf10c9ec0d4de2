import { Temporal } from 'temporal-polyfill'

/** The steps of an answer of which every group has a row. */
export interface FilledSteps {
  /** Where they begin, in seconds since the epoch. */
  readonly starts: readonly number[]
  /** Whether all of each is counted: 1, or 0. */
  readonly counted: readonly number[]
}

/** The parts of a question that decide its steps. */
export interface Stepped {
  readonly fromMs: number
  readonly toMs: number
  readonly step: string
  readonly timeZone: string
}

/** Steps of a group: a chart has fewer points. They travel with the question, some 30 kB. */
const stepsMax = 2_000
const clockMs: Readonly<Record<string, number>> = { minute: 60_000, quarter_hour: 900_000, hour: 3_600_000 }
const nextOf: Readonly<Record<string, Temporal.DurationLike>> = {
  day: { days: 1 },
  week: { days: 7 },
  month: { months: 1 },
}

/** Where the step of a time begins. As in ClickHouse hours are counted from the start of their day. */
export function stepStart(ms: number, { step, timeZone }: Pick<Stepped, 'step' | 'timeZone'>): number {
  const at = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
  const length = clockMs[step]
  if (length !== undefined) {
    const dayMs = at.startOfDay().epochMilliseconds
    return dayMs + Math.floor((ms - dayMs) / length) * length
  }
  const date = at.toPlainDate()
  const first =
    step === 'month' ? date.with({ day: 1 }) : step === 'week' ? date.subtract({ days: date.dayOfWeek - 1 }) : date
  return first.toZonedDateTime(timeZone).epochMilliseconds
}

function startAfter(startMs: number, asked: Stepped): number {
  const length = clockMs[asked.step]
  if (length !== undefined) return stepStart(startMs + length, asked)
  const date = Temporal.Instant.fromEpochMilliseconds(startMs).toZonedDateTimeISO(asked.timeZone).toPlainDate()
  return date.add(nextOf[asked.step] ?? { days: 1 }).toZonedDateTime(asked.timeZone).epochMilliseconds
}

/** A span of whole buckets. */
export const widened = ({ fromMs, toMs }: Pick<Stepped, 'fromMs' | 'toMs'>, bucketMs: number) => ({
  fromMs: Math.floor(fromMs / bucketMs) * bucketMs,
  toMs: Math.ceil(toMs / bucketMs) * bucketMs,
})

/**
 * Returns the steps of a question, whose times are widened to buckets of `bucketMs`. What begins or ends after
 * `completeThroughMs` is not counted yet; undefined: nothing is known to be.
 */
export function filledSteps(asked: Stepped, bucketMs: number, completeThroughMs: number | undefined): FilledSteps {
  const { fromMs, toMs } = widened(asked, bucketMs)
  const starts: number[] = []
  const counted: number[] = []
  for (let ms = stepStart(fromMs, asked); ms < toMs && starts.length <= stepsMax; ) {
    const next = startAfter(ms, asked)
    starts.push(ms / 1_000)
    counted.push(completeThroughMs !== undefined && Math.min(next, toMs) <= completeThroughMs ? 1 : 0)
    ms = next
  }
  return { starts, counted }
}

/** Reads `fill`, with what is wrong about it. Only rows in order of time and names are filled. */
export function readFill(
  { fill, ...params }: Readonly<Record<string, string | undefined>>,
  asked: Stepped | undefined,
  problems: string[],
): boolean {
  if (fill === undefined) return false
  const others = ['top', 'order', 'compare', 'price'].filter((name) => params[name] !== undefined)
  if (others.length > 0) problems.push(`fill conflicts with ${others.join(', ')}`)
  if (asked?.step === 'total') problems.push('fill needs a step other than total')
  else if (asked !== undefined && filledSteps(asked, 60_000, undefined).starts.length > stepsMax) {
    problems.push(`fill supports at most ${stepsMax} steps: use a shorter period or a longer step`)
  }
  return true
}
