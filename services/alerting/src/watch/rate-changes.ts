import type { RateQuestion, RateRow } from '@weir/clickhouse/rate-queries.ts'
import { claimKey } from '@weir/core/alerts/claim.ts'
import type { Policy, Watch } from '@weir/core/policy/policy.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'

/** What is usual is the average of so many windows before. */
const windowsBefore = 12
const minuteMs = 60_000
/** A window that ended longer ago says nothing of now: metering is behind. */
const oldMs = 15 * minuteMs
/** Subjects of one watch in one look, those with most requests first: beyond that they tell whoever reads them nothing new. */
export const changesMax = 1_000

/** A sudden change that a watch has found. */
export interface RateChange {
  readonly kind: 'changed'
  readonly watch: string
  readonly alert: Watch['alert']
  readonly subject: string
  /** Decisions in the window. */
  readonly count: number
  /** In a window before it, on average. */
  readonly usual: number
  readonly startMs: number
  readonly endMs: number
  /** Of its claim. */
  readonly lifetimeMs: number
  readonly isRecurring: true
  readonly thresholds: readonly { readonly percent: number; readonly key: string }[]
}

/** What rates are asked of. */
export interface RateSource {
  /** How far decisions are complete. */
  completeness(): Promise<Completeness>
  changed(question: RateQuestion): Promise<readonly RateRow[]>
}

/** The last whole window of which every decision is there. */
function questionOf({ alert, per, windowMs, factor, least }: Watch, endMs: number): RateQuestion {
  const isRise = alert === 'weir.denied_rate.high'
  return { isRise, per, endMs, windowMs, windowsBefore, factor, least, limit: changesMax }
}

function changeOf(watch: Watch, { subject, count, usual }: RateRow, endMs: number): RateChange {
  const { name, alert, windowMs, cooldownMs } = watch
  // A watch has no size, and no threshold of a limit has the name of an alert.
  const key = claimKey({ subject, limit: name, size: 0, threshold: alert, periodStart: 'cooldown' })
  return {
    ...{ kind: 'changed', watch: name, alert, subject, count, usual, startMs: endMs - windowMs, endMs },
    ...{ lifetimeMs: cooldownMs, isRecurring: true, thresholds: [{ percent: 100, key }] },
  }
}

const timeOf = (ms: number) => new Date(ms).toISOString()
const until = (ms: number) => (ms === 0 ? 'for no time' : `until ${timeOf(ms)}`)

export interface Look {
  readonly changes: readonly RateChange[]
  /** Why not all watches were looked at: what is missing would look like a fall. */
  readonly behind?: string
}

/** A journal that is cut off since then is in what is usual, and not in the window. */
const isCutOff = ({ silent }: Completeness, { endMs, windowMs }: RateQuestion) =>
  silent.find(({ sinceMs }) => sinceMs >= endMs - (windowsBefore + 1) * windowMs)

/** Looks once at what all watches of the policy watch. Rejects with ClickHouse's error. */
export async function lookForChanges(
  { watches }: Pick<Policy, 'watches'>,
  source: RateSource,
  nowMs: number,
): Promise<Look> {
  if (watches.size === 0) return { changes: [] }
  const complete = await source.completeness()
  const throughMs = complete.completeThroughMs ?? 0
  const endMs = Math.floor(Math.min(throughMs, nowMs) / minuteMs) * minuteMs
  if (nowMs - endMs > oldMs) return { changes: [], behind: `decisions are complete ${until(throughMs)} only` }
  const changes: RateChange[] = []
  let behind: string | undefined
  for (const watch of watches.values()) {
    const question = questionOf(watch, endMs)
    const cutOff = question.isRise ? undefined : isCutOff(complete, question)
    if (cutOff !== undefined) {
      behind = `${watch.name}: journal ${cutOff.journal} is cut off since ${timeOf(cutOff.sinceMs)}`
      continue
    }
    const rows = await source.changed(question)
    changes.push(...rows.map((row) => changeOf(watch, row, endMs)))
  }
  return behind === undefined ? { changes } : { changes, behind }
}
