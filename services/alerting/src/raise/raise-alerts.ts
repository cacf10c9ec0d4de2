import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import { LRUCache } from 'lru-cache'
import type { Crossing } from '../watch/crossings.ts'
import type { RateChange } from '../watch/rate-changes.ts'
import type { AlertHistory, AlertTopic, ClaimedKey, ClaimStore, FoundClaim } from './ports.ts'

/** Namespace of alert ids: an alert's id follows from its claim alone, so a repeated alert is the same alert. */
const alertNamespace = '5b3d7a52-4f0e-5c35-9f5c-3d1e6c2b8a47'

/** A period that ended longer ago is over: its alert would only confuse. */
const lateMs = 15 * 60_000
/** Claims remembered as done, so that a subject at its limit costs Redis nothing more; those longest unused go first. */
const rememberedMax = 30_000
/** Findings raised together: a round trip, a question and a publish for all, and a bound on what is in flight. */
const raisedAtOnceMax = 1_000

export interface AlertCounters {
  raised: number
  superseded: number
  /** Of periods that were over: kept, and not sent. */
  late: number
  /** Found in ClickHouse where Redis knew nothing of them. */
  forgotten: number
}

/** What there is to alert of. */
export type Finding = Crossing | RateChange
type Threshold = Finding['thresholds'][number]

/** A finding's highest threshold that is ours to raise, with the lower ones that it supersedes. */
interface Due {
  readonly alert: AlertV1
  /** Redis knew nothing of it, and ClickHouse might. */
  readonly isNew: boolean
  readonly highest: Omit<ClaimedKey, 'stamp'>
  readonly lower: readonly Omit<ClaimedKey, 'stamp'>[]
}

/** What may be raised again, once its claim has expired, is told apart by when it was first found. */
function stampOf(finding: Finding): string {
  if (!finding.isRecurring) return ''
  const { startMs, endMs } = finding
  return finding.kind === 'changed' ? `${startMs}-${endMs}` : `${startMs}-${endMs}-${finding.decisionId}`
}

function alertOf(finding: Finding, { percent, key }: Threshold, stamp: string, nowMs: number): AlertV1 {
  const id = uuidv5(alertNamespace, stamp === '' ? key : `${key} ${stamp}`)
  const attributes = { id, subject: finding.subject, time: new Date(nowMs).toISOString() }
  const [from, until] = [new Date(finding.startMs).toISOString(), new Date(finding.endMs).toISOString()]
  if (finding.kind === 'changed') {
    const { watch, alert, count, usual } = finding
    return { ...attributes, type: alert, data: { watch, window_start: from, window_end: until, count, usual } }
  }
  const { kind, limit, size, used, decisionId } = finding
  if (kind === 'blocked') {
    return { ...attributes, type: 'weir.limit.blocked', data: { limit, size, until, decision_id: decisionId } }
  }
  const data = { limit, size, used, percent, period_start: from, period_end: until, decision_id: decisionId }
  return { ...attributes, type: 'weir.quota.reached', data }
}

export interface RaiserOptions {
  readonly claims: ClaimStore
  readonly history: AlertHistory
  readonly topic: AlertTopic
  readonly clock: Clock
  readonly counters: AlertCounters
  readonly crash?: CrashPoint
}

class AlertRaiser {
  readonly #options: RaiserOptions
  readonly #crash: CrashPoint
  readonly #remembered = new LRUCache<string, true>({ max: rememberedMax })

  constructor(options: RaiserOptions) {
    this.#options = options
    this.#crash = options.crash ?? noCrash
  }

  /** Safe to repeat: every claim is taken once, by whichever process. */
  async raise(findings: readonly Finding[]): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    const news = findings.flatMap((finding) => {
      const thresholds = finding.thresholds.filter(({ key }) => !this.#remembered.has(key))
      return thresholds.length === 0 ? [] : [{ ...finding, thresholds }]
    })
    const isLate = ({ endMs }: Finding) => nowMs - endMs > lateMs
    const late = news.filter(isLate)
    const timely = news.filter((finding) => !isLate(finding))
    for (let at = 0; at < late.length; at += raisedAtOnceMax) {
      await this.#keepLate(late.slice(at, at + raisedAtOnceMax), nowMs)
    }
    for (let at = 0; at < timely.length; at += raisedAtOnceMax) {
      await this.#raiseSome(timely.slice(at, at + raisedAtOnceMax), nowMs)
    }
  }

  async #keepLate(findings: readonly Finding[], nowMs: number): Promise<void> {
    const alerts = findings.flatMap((finding) =>
      finding.thresholds.slice(0, 1).map((highest) => alertOf(finding, highest, stampOf(finding), nowMs)),
    )
    await this.#options.history.keepLate(alerts)
    this.#options.counters.late += alerts.length
    // What is looked at again and again may be timely then.
    this.#remember(findings.filter(({ kind }) => kind !== 'changed'))
  }

  async #raiseSome(findings: readonly Finding[], nowMs: number): Promise<void> {
    const { claims, history, topic, counters } = this.#options
    // 1. Claim. A crash after it leaves `pending`, and whoever reads the decisions again goes on from there.
    const keys = findings.flatMap((finding) => {
      const { thresholds, lifetimeMs } = finding
      return thresholds.map(({ key }) => ({ key, lifetimeMs, stamp: stampOf(finding) }))
    })
    const found = await claims.claim(keys)
    this.#crash('claim')
    const due = dueOf(findings, new Map(keys.map(({ key }, at) => [key, found[at]])), nowMs)
    // 2. What Redis knew nothing of may have been raised before it lost its data. Only then is anything found.
    const asked = due.filter(({ isNew }) => isNew).map(({ alert }) => alert)
    const before = asked.length === 0 ? new Set<string>() : await history.raised(asked)
    const toPublish = due.filter(({ alert }) => !before.has(alert.id))
    // 3. Close the lower ones. Closed after the publish, a crash in between would raise them as well.
    const lower = due.flatMap((one) => one.lower)
    if (lower.length > 0) await claims.finish(lower)
    this.#crash('supersede')
    // 4. Publish. A crash after it publishes again, under the same ids.
    if (toPublish.length > 0) await topic.publish(toPublish.map(({ alert }) => alert))
    this.#crash('publish')
    // 5. Done. The batch's offset is committed after all of this.
    if (due.length > 0) await claims.finish(due.map(({ highest }) => highest))
    this.#crash('done')
    counters.raised += toPublish.length
    counters.forgotten += due.length - toPublish.length
    counters.superseded += lower.length
    this.#remember(findings)
  }

  #remember(findings: readonly Finding[]): void {
    for (const { thresholds, isRecurring, lifetimeMs } of findings) {
      // 0 stands for no end: only what recurs is ever to be claimed anew.
      for (const { key } of thresholds) this.#remembered.set(key, true, { ttl: isRecurring ? lifetimeMs : 0 })
    }
  }
}

/** Of each finding what nobody has finished: its highest threshold is raised, the lower ones are superseded by it. */
function dueOf(findings: readonly Finding[], found: ReadonlyMap<string, FoundClaim | undefined>, nowMs: number): Due[] {
  return findings.flatMap((finding) => {
    const [highest, ...lower] = finding.thresholds.filter(({ key }) => found.get(key)?.state !== 'done')
    if (highest === undefined) return []
    const { lifetimeMs } = finding
    const claimed = ({ key }: Threshold) => ({ key, lifetimeMs })
    const claim = found.get(highest.key)
    const isNew = claim?.state === 'acquired' && !finding.isRecurring
    // Whoever claimed it first, and died, may have published it under its stamp.
    const stamp = (claim?.state === 'pending' && claim.stamp) || stampOf(finding)
    const alert = alertOf(finding, highest, stamp, nowMs)
    return [{ alert, isNew, highest: claimed(highest), lower: lower.map(claimed) }]
  })
}

/** Raises what was found, say in a batch of decisions: a handful of round trips, however many there are. */
export function createAlertRaiser(options: RaiserOptions): (findings: readonly Finding[]) => Promise<void> {
  const raiser = new AlertRaiser(options)
  return (findings) => raiser.raise(findings)
}
