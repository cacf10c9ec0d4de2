import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { formatTraceparent, newSpanId, parseTraceparent } from '@weir/contracts/trace-context.ts'
import type { Clock } from '@weir/core/clock.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { Tracing } from '@weir/runtime/tracing.ts'
import { LRUCache } from 'lru-cache'
import type { Counters } from '../metrics.ts'
import type { AlertHistory } from '../record/alert-table.ts'
import type { AlertCandidate, PublishAlerts, QuotaResolved } from '../types.ts'
import type { ClaimStore, FoundClaim, Further } from './claim-store.ts'

/** Namespace of alert ids: an alert's id follows from its claim alone, so a repeated alert is the same alert. */
const alertNamespace = '5b3d7a52-4f0e-5c35-9f5c-3d1e6c2b8a47'

/** A period that ended longer ago is over: its alert would only confuse. */
const lateMs = 15 * 60_000
/**
 * Claims remembered as done, so that a subject at its limit costs Redis nothing more; the least recently used go first.
 */
const rememberedMax = 30_000
/** Candidates raised together: one round trip, one query and one publish for all, and a bound on what is in flight. */
const raisedTogetherMax = 1_000

type Threshold = AlertCandidate['thresholds'][number]

/** Returns what tells two alerts of one claim apart: when a recurring one was first found. */
function occurrenceOf(candidate: AlertCandidate): string {
  if (!candidate.isRecurring) return ''
  const { startMs, endMs } = candidate
  return 'decisionId' in candidate ? `${startMs}-${endMs}-${candidate.decisionId}` : `${startMs}-${endMs}`
}

/** Its id follows from that of the alert that it resolves. */
function resolvedOf({ alert, reason, size, used }: QuotaResolved) {
  const { id: resolves, data, time: reached_at } = alert
  const id = uuidv5(alertNamespace, resolves)
  return { id, type: 'weir.quota.resolved', data: { ...data, size, used, resolves, reached_at, reason } } as const
}

function alertOf(candidate: AlertCandidate, { percent, key }: Threshold, occurrenceId: string, nowMs: number): AlertV1 {
  const id = uuidv5(alertNamespace, occurrenceId === '' ? key : `${key} ${occurrenceId}`)
  const trace = 'trace' in candidate ? candidate.trace : undefined
  // The span that raises it, be it recorded by this process or not.
  const traced = trace && { traceparent: formatTraceparent({ traceId: trace.traceId, spanId: newSpanId() }) }
  const attributes = { id, subject: candidate.subject, time: new Date(nowMs).toISOString(), ...traced }
  const [from, until] = [new Date(candidate.startMs).toISOString(), new Date(candidate.endMs).toISOString()]
  if (candidate.kind === 'changed') {
    const { watch, alert, count, usual } = candidate
    return { ...attributes, type: alert, data: { watch, window_start: from, window_end: until, count, usual } }
  }
  if (candidate.kind === 'resolved') return { ...attributes, ...resolvedOf(candidate) }
  const { limit, size, decisionId } = candidate
  const block = { limit, size, until, decision_id: decisionId }
  if (candidate.kind === 'further') {
    return { ...attributes, type: 'weir.limit.blocked', data: { ...block, more: candidate.more } }
  }
  const by = { ...(candidate.by && { by: candidate.by }), ...candidate.measured }
  if (candidate.kind === 'blocked') return { ...attributes, type: 'weir.limit.blocked', data: { ...block, ...by } }
  const { used } = candidate
  const period = { period_start: from, period_end: until, decision_id: decisionId }
  if (candidate.kind === 'forecast') {
    const data = { limit, size, used, runs_out: new Date(candidate.runsOutMs).toISOString(), ...period, ...by }
    return { ...attributes, type: 'weir.quota.forecast', data }
  }
  const data = { limit, size, used, percent, ...period, ...by }
  return { ...attributes, type: 'weir.quota.reached', data }
}

interface RaiserOptions {
  readonly claims: Pick<ClaimStore, 'claim' | 'finish' | 'keepFurther'>
  readonly history: AlertHistory
  readonly publish: PublishAlerts
  readonly clock: Clock
  readonly counters: Counters
  readonly crash?: CrashPoint
  /** Undefined where nothing is traced. */
  readonly tracing?: Tracing | undefined
}

/** Raises the candidates of a batch, in a handful of round trips however many there are. */
export class AlertRaiser {
  readonly #options: RaiserOptions
  readonly #remembered = new LRUCache<string, true>({ max: rememberedMax })

  constructor(options: RaiserOptions) {
    this.#options = options
  }

  /** Safe to repeat: each claim is acquired once among all processes. */
  async raise(candidates: readonly AlertCandidate[]): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    const news = candidates.flatMap((candidate) => {
      const thresholds = candidate.thresholds.filter(({ key }) => !this.#remembered.has(key))
      return thresholds.length === 0 ? [] : [{ ...candidate, thresholds }]
    })
    // What an hour counted, and that an alert is over, is told when a process is there to tell it.
    const isLate = ({ kind, endMs }: AlertCandidate) =>
      kind !== 'further' && kind !== 'resolved' && nowMs - endMs > lateMs
    const late = news.filter(isLate)
    const timely = news.filter((candidate) => !isLate(candidate))
    for (let at = 0; at < late.length; at += raisedTogetherMax) {
      await this.#keepLate(late.slice(at, at + raisedTogetherMax), nowMs)
    }
    for (let at = 0; at < timely.length; at += raisedTogetherMax) {
      await this.#raiseSome(timely.slice(at, at + raisedTogetherMax), nowMs)
    }
  }

  async #keepLate(candidates: readonly AlertCandidate[], nowMs: number): Promise<void> {
    const alerts = candidates.flatMap((candidate) =>
      candidate.thresholds.slice(0, 1).map((highest) => alertOf(candidate, highest, occurrenceOf(candidate), nowMs)),
    )
    await this.#options.history.keepLate(alerts)
    this.#options.counters.suppressed.late += alerts.length
    // A rate change is evaluated again and may be timely then.
    this.#remember(candidates.filter(({ kind }) => kind !== 'changed'))
  }

  async #raiseSome(candidates: readonly AlertCandidate[], nowMs: number): Promise<void> {
    const { claims, history, publish, clock, counters, crash = noCrash, tracing } = this.#options
    // 1. Claim. A crash here leaves `pending`; the process that reads the decisions again continues from there.
    const keys = candidates.flatMap((candidate) => {
      const { thresholds, lifetimeMs } = candidate
      const counted = countedOf(candidate, nowMs)
      return thresholds.map(({ key }) => ({ key, lifetimeMs, occurrenceId: occurrenceOf(candidate), counted }))
    })
    const found = await claims.claim(keys)
    crash('claim')
    const foundByKey = new Map(keys.map(({ key }, at) => [key, found[at]]))
    // Before the offset is committed, so that what is counted is told when its hour is over.
    for (const [hour, further] of furtherOf(candidates, foundByKey)) await claims.keepFurther(hour, further)
    const due = dueOf(candidates, foundByKey, nowMs)
    // 2. Look them up in ClickHouse: they may have been raised before Redis lost its data, or before a crash.
    const asked = due.filter(({ isRecurring }) => !isRecurring).map(({ alert }) => alert)
    const before = asked.length === 0 ? new Set<string>() : await history.raised(asked)
    const toPublish = due.filter(({ alert }) => !before.has(alert.id))
    // 3. Finish the lower thresholds. Finished after the publish, a crash in between would raise them as well.
    const lower = due.flatMap((one) => one.lower)
    if (lower.length > 0) await claims.finish(lower)
    crash('supersede')
    // 4. Publish. After a crash here the alerts are published again, under the same ids.
    if (toPublish.length > 0) await publish(toPublish.map(({ alert }) => alert))
    const publishedMs = clock.nowMs()
    for (const { decidedMs, alert, trace } of toPublish) {
      if (tracing !== undefined && trace !== undefined) traceRaised(tracing, alert, trace.spanId, nowMs, publishedMs)
      if (decidedMs !== undefined) counters.alertSeconds.observe(Math.max(0, publishedMs - decidedMs) / 1_000)
    }
    crash('publish')
    // 5. Finish the claims. The batch's offset is committed after this.
    if (due.length > 0) await claims.finish(due.map(({ highest }) => highest))
    crash('done')
    counters.suppressed.forgotten += due.length - toPublish.length
    counters.suppressed.superseded += lower.length
    this.#remember(candidates)
  }

  #remember(candidates: readonly AlertCandidate[]): void {
    for (const { thresholds, isRecurring, lifetimeMs } of candidates) {
      // A ttl of 0 is none: only recurring candidates are ever claimed again.
      for (const { key } of thresholds) this.#remembered.set(key, true, { ttl: isRecurring ? lifetimeMs : 0 })
    }
  }
}

/** Blocks for single values are bounded; a limit that counts by the subject alone has one block at a time. */
function countedOf(candidate: AlertCandidate, nowMs: number) {
  if (candidate.kind !== 'blocked' || candidate.by === undefined) return undefined
  const { subject, limit } = candidate
  return { subject, limit, nowMs }
}

/** Returns which blocks were counted without an alert of their own, by the start of the hour. */
function furtherOf(candidates: readonly AlertCandidate[], found: ReadonlyMap<string, FoundClaim | undefined>) {
  const byHour = new Map<number, Map<string, Further>>()
  for (const candidate of candidates) {
    const claim = found.get(candidate.thresholds[0]?.key ?? '')
    if (claim?.state !== 'counted' || candidate.kind !== 'blocked') continue
    const { subject, limit, size, decisionId } = candidate
    const hour = Number(claim.occurrenceId)
    const ofHour = byHour.get(hour) ?? new Map<string, Further>()
    byHour.set(hour, ofHour.set(JSON.stringify([subject, limit]), { subject, limit, size, decisionId }))
  }
  return byHour
}

/** Returns what is due of each candidate: its highest unfinished threshold is raised and supersedes the lower ones. */
function dueOf(
  candidates: readonly AlertCandidate[],
  found: ReadonlyMap<string, FoundClaim | undefined>,
  nowMs: number,
) {
  return candidates.flatMap((candidate) => {
    const [highest, ...lower] = candidate.thresholds.filter(({ key }) => {
      const state = found.get(key)?.state
      return state !== 'done' && state !== 'counted'
    })
    if (highest === undefined) return []
    const { lifetimeMs, isRecurring } = candidate
    const claimed = ({ key }: Threshold) => ({ key, lifetimeMs })
    const claim = found.get(highest.key)
    // The first claimant, which died, may have published the alert under its occurrenceId.
    const occurrenceId = (claim?.state === 'pending' && claim.occurrenceId) || occurrenceOf(candidate)
    const alert = alertOf(candidate, highest, occurrenceId, nowMs)
    const decidedMs = 'decidedMs' in candidate ? candidate.decidedMs : undefined
    const trace = 'trace' in candidate ? candidate.trace : undefined
    return [{ alert, isRecurring, decidedMs, trace, highest: claimed(highest), lower: lower.map(claimed) }]
  })
}

/** The span of an alert between the reading of its decision and Kafka; `deliver` spans are its children. */
function traceRaised(tracing: Tracing, alert: AlertV1, parentSpanId: string, startMs: number, endMs: number): void {
  const context = parseTraceparent(alert.traceparent ?? '')
  if (context === undefined) return
  const { traceId, spanId } = context
  const attributes = { 'weir.alert.id': alert.id, 'weir.alert.type': alert.type, 'messaging.system': 'kafka' }
  tracing.record({ name: 'raise alert', kind: 'producer', traceId, spanId, parentSpanId, startMs, endMs, attributes })
}
