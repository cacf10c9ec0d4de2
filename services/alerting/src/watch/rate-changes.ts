import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { claimKey } from '@weir/core/alerts/claim.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { Watch } from '@weir/policy/policy.ts'
import type { RateChange } from '../types.ts'
import { hasGaps, type RateQuestion, type RateRow, readChangedRates, readPresence } from './rate-queries.ts'

/** The usual rate is the average of this many earlier windows. */
const windowsBefore = 12
const minuteMs = 60_000
/** A window that ended longer ago is not evaluated. */
const oldMs = 15 * minuteMs
/** Subjects of one watch in one evaluation, those with most requests first; the others come with the next one. */
export const changesMax = 1_000

/** The queries of an evaluation. */
export type RateSource = ReturnType<typeof rateSource>

/** Returns the queries to ClickHouse; each rejects with the server's error. */
export const rateSource = (client: ClickHouseClient) => ({
  presence: (sinceMs: number): Promise<readonly Period[]> => readPresence(client, topics.decisions, sinceMs),
  hasGaps: (during: Period): Promise<boolean> => hasGaps(client, topics.decisions, during),
  changed: (question: RateQuestion): Promise<readonly RateRow[]> => readChangedRates(client, question),
})

/** Returns the end of the last whole minute whose decisions are complete; undefined if that is long ago. */
export function lastWholeMinute({ completeThroughMs }: Completeness, nowMs: number): number | undefined {
  const endMs = Math.floor(Math.min(completeThroughMs ?? 0, nowMs) / minuteMs) * minuteMs
  return nowMs - endMs > oldMs ? undefined : endMs
}

/** Returns the ends of the windows to evaluate: every minute since the last evaluation, except old ones. */
export function windowEndsToEvaluate(evaluatedMs: number | undefined, newestMs: number): readonly number[] {
  const firstMs = evaluatedMs === undefined ? newestMs : Math.max(evaluatedMs + minuteMs, newestMs - oldMs + minuteMs)
  const count = Math.max(0, (newestMs - firstMs) / minuteMs + 1)
  return Array.from({ length: count }, (_, at) => firstMs + at * minuteMs)
}

/** The decisions whose rate each alert reports, and which way it changed. */
const changesOf = {
  'weir.denied_rate.high': { outcome: 'deny', isRise: true },
  'weir.allowed.high': { outcome: 'allow', isRise: true },
  'weir.allowed.dropped': { outcome: 'allow', isRise: false },
} as const satisfies { readonly [T in Watch['alert']]: Pick<RateQuestion, 'outcome' | 'isRise'> }

function questionOf({ name, alert, per, windowMs, factor, least, cooldownMs }: Watch, endMs: number): RateQuestion {
  const quiet = { watch: name, type: alert, sinceMs: endMs - cooldownMs }
  const firstMs = endMs - (windowsBefore + 1) * windowMs
  return { ...changesOf[alert], per, firstMs, endMs, windowMs, windowsBefore, factor, least, quiet, limit: changesMax }
}

function changeOf(watch: Watch, { subject, count, usual }: RateRow, endMs: number): RateChange {
  const { name, alert, windowMs, cooldownMs } = watch
  // A watch has no size, and no threshold of a limit has the name of an alert.
  const key = claimKey({ subject, limit: name, size: 0, threshold: alert, periodStart: 'cooldown' })
  return {
    kind: 'changed',
    watch: name,
    alert,
    subject,
    count,
    usual,
    startMs: endMs - windowMs,
    endMs,
    lifetimeMs: cooldownMs,
    isRecurring: true,
    thresholds: [{ percent: 100, key }],
  }
}

/** Returns the longest part of this time in which no ingress ran. */
export function longestAbsenceMs(presence: readonly Period[], { fromMs, toMs }: Period): number {
  let [longestMs, coveredMs] = [0, fromMs]
  for (const one of presence.toSorted((a, b) => a.fromMs - b.fromMs)) {
    longestMs = Math.max(longestMs, Math.min(one.fromMs, toMs) - coveredMs)
    coveredMs = Math.max(coveredMs, one.toMs)
  }
  return Math.max(longestMs, toMs - coveredMs)
}

/** The result of evaluating a window. */
export type Evaluation =
  | { readonly kind: 'evaluated'; readonly changes: readonly RateChange[] }
  /** Data is missing, which would look like a change. */
  | { readonly kind: 'unknown'; readonly why: string }

const timeOf = (ms: number) => new Date(ms).toISOString()

/** Evaluates one window of a watch. */
export async function evaluateWindow(
  watch: Watch,
  source: RateSource,
  { silent }: Completeness,
  endMs: number,
): Promise<Evaluation> {
  const question = questionOf(watch, endMs)
  const during = { fromMs: question.firstMs, toMs: endMs }
  // Its decisions are in the usual rate, and not in the window.
  const cutOff = silent.find(({ sinceMs }) => sinceMs >= question.firstMs)
  if (cutOff !== undefined && !question.isRise) {
    return { kind: 'unknown', why: `journal ${cutOff.journal} has not reported since ${timeOf(cutOff.sinceMs)}` }
  }
  const absenceMs = longestAbsenceMs(await source.presence(during.fromMs), during)
  // A restart is shorter.
  if (absenceMs > watch.windowMs / 4) {
    const what = `no ingress was running for ${Math.round(absenceMs / 1_000)} s`
    return { kind: 'unknown', why: `${what} between ${timeOf(during.fromMs)} and ${timeOf(endMs)}` }
  }
  if (await source.hasGaps(during)) {
    return { kind: 'unknown', why: `decisions have been missing since ${timeOf(during.fromMs)} (table gaps)` }
  }
  const rows = await source.changed(question)
  return { kind: 'evaluated', changes: rows.map((row) => changeOf(watch, row, endMs)) }
}
