import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { giveUpAfterMs } from '@weir/contracts/delivery.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import type { DeliveryOutcome } from '@weir/core/alerts/alert-types.ts'
import type { Clock } from '@weir/core/clock.ts'
import { endpointNameOf, findTarget } from '@weir/policy/contact-targets.ts'
import type { Policy, Target } from '@weir/policy/policy.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { Counters } from '../metrics.ts'
import type { DeliveryJob, JobOutcome, RecordDeliveries } from '../types.ts'
import type { AttemptResult } from './channels/channel.ts'
import type { SendAlert } from './channels/channels.ts'
import { isForCustomer } from './customer-filter.ts'
import type { DisabledEndpoints } from './disabled-endpoints.ts'
import type { EndpointLimiter } from './endpoint-limiter.ts'
import { queuedRow } from './queue-alerts.ts'
import { nextTryMs } from './retry-schedule.ts'

/**
 * A process may lag behind the policy by up to this much. Until then a job of an unknown endpoint waits.
 */
const policyBehindMs = 120_000
const unknownLookMs = 5_000

/** Pause after which a job of a paused endpoint checks the endpoint again. */
const pausedLookMs = 60_000

interface DeliverOptions {
  readonly policyInForce: () => TargetPolicy
  readonly limiter: EndpointLimiter
  readonly disabled: DisabledEndpoints
  readonly send: SendAlert
  readonly record: RecordDeliveries
  readonly clock: Clock
  readonly random: () => number
  readonly counters: Counters
  readonly crash?: CrashPoint
}

/** Builds the row of one run; `result` is absent if nothing was sent. */
function rowOf(
  job: DeliveryJob,
  about: { outcome: DeliveryOutcome; atMs: number; endMs: number; nextMs?: number | undefined; error?: string },
  result?: AttemptResult,
): DeliveryV1 {
  return {
    ...queuedRow(job),
    attempt: job.attempts + (result === undefined ? 0 : 1),
    at: formatTs(about.atMs),
    outcome: about.outcome,
    status: result?.status ?? 0,
    ms: Math.max(0, Math.round(about.endMs - about.atMs)),
    error: about.error ?? result?.error ?? '',
    next_try: about.nextMs === undefined ? null : formatTs(about.nextMs),
    answer: result?.answer ?? '',
  }
}

type TargetPolicy = Pick<Policy, 'endpoints' | 'contacts' | 'unsubscribed' | 'ownAlerts' | 'limits' | 'subjects'>

/** Returns where a job goes by this policy; undefined if it goes nowhere any more. */
function targetOf(policy: TargetPolicy, job: DeliveryJob): Target | undefined {
  if (isOfContact(job) && !isForCustomer(job.alert, policy)) return undefined
  return findTarget(policy, job.endpoint, job.alert.subject)
}

const isOfContact = ({ endpoint }: DeliveryJob) => endpointNameOf(endpoint) !== endpoint
const goneReason = (job: DeliveryJob, error: string) =>
  isOfContact(job) ? `${error}, contact of ${job.alert.subject}` : error
const unknownReason = (job: DeliveryJob) =>
  `the ${isOfContact(job) ? "subject's contact has no such address that gets this alert" : 'policy has no such endpoint'} any more`

/**
 * Returns the function that runs a job: at most one attempt, its record, and the decision what comes next. It rejects
 * if the record could not be written; the whole run is then repeated.
 */
export function createDeliverer(options: DeliverOptions): (job: DeliveryJob) => Promise<JobOutcome> {
  const { policyInForce, limiter, disabled, clock, counters, crash = noCrash } = options

  /** Records the outcome of a run, and counts it once it is recorded. */
  const record = async (type: keyof Counters['deliveries'], row: DeliveryV1): Promise<void> => {
    await options.record([row])
    const { outcome } = row
    if (outcome === 'queued' || outcome === 'requested' || outcome === 'silenced') return
    counters.deliveries[type].results[outcome] += 1
  }

  const drop = async (job: DeliveryJob, error: string, type: Target['type'] | 'unknown'): Promise<JobOutcome> => {
    const nowMs = clock.nowMs()
    await record(type, rowOf(job, { outcome: 'dropped', atMs: nowMs, endMs: nowMs, error }))
    return { kind: 'over' }
  }

  const giveUp = async (job: DeliveryJob, { type }: Target, reason: string, row: DeliveryV1): Promise<JobOutcome> => {
    await record(type, row)
    return { kind: 'given_up', reason: `${job.endpoint}: ${reason}` }
  }

  const complete = async (job: DeliveryJob, endpoint: Target, atMs: number, result: AttemptResult) => {
    const endMs = clock.nowMs()
    const attempts = job.attempts + 1
    const { attemptSeconds, delaySeconds } = counters.deliveries[endpoint.type]
    attemptSeconds.observe((endMs - atMs) / 1_000)
    if (result.error === undefined) {
      if (job.alert.type === 'weir.endpoint.test') await disabled.enable(endpoint)
      await record(endpoint.type, rowOf(job, { outcome: 'delivered', atMs, endMs }, result))
      delaySeconds.observe((endMs - (job.requestedMs || Date.parse(job.alert.time))) / 1_000)
      return { kind: 'over' } as const
    }
    if (result.verdict === 'gone') await disabled.disable(endpoint, goneReason(job, result.error))
    const timing = { attempts, nowMs: endMs, retryAfterMs: result.retryAfterMs }
    const nextMs = result.verdict === undefined ? nextTryMs(timing, options.random) : undefined
    if (nextMs === undefined || nextMs > job.giveUpMs) {
      return giveUp(job, endpoint, result.error, rowOf(job, { outcome: 'given_up', atMs, endMs }, result))
    }
    await record(endpoint.type, rowOf(job, { outcome: 'failed', atMs, endMs, nextMs }, result))
    return { kind: 'later', job: { ...job, attempts, dueMs: nextMs }, atMs: nextMs } as const
  }

  return async function deliverAlert(job) {
    const nowMs = clock.nowMs()
    if (nowMs < job.dueMs) return { kind: 'later', job, atMs: job.dueMs }
    const endpoint = targetOf(policyInForce(), job)
    if (endpoint === undefined) {
      // Another process may have read the newer policy first.
      const isYoung = nowMs < job.giveUpMs - giveUpAfterMs + policyBehindMs
      if (isYoung) return { kind: 'later', job, atMs: nowMs + unknownLookMs }
      return drop(job, unknownReason(job), 'unknown')
    }
    // A test alert finds out whether a disabled endpoint works again.
    const isTest = job.alert.type === 'weir.endpoint.test'
    const reasonNot = isTest ? undefined : await disabled.reasonFor(endpoint)
    if (reasonNot !== undefined) return drop(job, reasonNot, endpoint.type)
    if (nowMs > job.giveUpMs) {
      const error = 'not retried: the retry period has ended'
      return giveUp(job, endpoint, error, rowOf(job, { outcome: 'given_up', atMs: nowMs, endMs: nowMs, error }))
    }
    if (endpoint.isPaused && !isTest) return { kind: 'later', job, atMs: nowMs + pausedLookMs }
    const permit = limiter.acquire(job.endpoint, nowMs)
    if (!permit.isGranted) return { kind: 'later', job, atMs: permit.askAgainMs }
    // 1. Send. After a crash here the alert is sent again, under the same id.
    const result = await options.send(endpoint, job.alert)
    limiter.release(job.endpoint, result.error === undefined, clock.nowMs())
    crash('attempt')
    // 2. Record. After a crash here the alert is sent and recorded again; the job is finished, or delayed, after this
    //   step.
    const after = await complete(job, endpoint, nowMs, result)
    crash('attempt_recorded')
    return after
  }
}
