import type { DeliveryOutcome, DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Endpoint } from '@weir/policy/policy.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { EndpointTurns } from './endpoint-turns.ts'
import type { AttemptResult, RecordDeliveries, SendAlert } from './ports.ts'
import { giveUpAfterMs, nextTryMs } from './retry-schedule.ts'

/** By so much a process may be behind with the policy; until then an endpoint that it does not know is looked for so often. */
const policyBehindMs = 120_000
const unknownLookMs = 5_000

/** How often what is to go to a paused endpoint asks whether it still is. */
const pausedLookMs = 60_000

/** What becomes of a job after its turn. */
export type AfterTurn =
  /** It has arrived, or will never be sent. */
  | { readonly kind: 'over' }
  /** A dead letter: tried for days in vain. */
  | { readonly kind: 'given_up'; readonly reason: string }
  /** To be taken up again then; `job` is what it carries from now on. */
  | { readonly kind: 'later'; readonly job: DeliveryJob; readonly atMs: number }

export interface DeliverCounters {
  delivered: number
  failedAttempts: number
  givenUp: number
  dropped: number
}

export interface DeliverOptions {
  readonly endpointOf: (name: string) => Endpoint | undefined
  readonly turns: EndpointTurns
  readonly send: SendAlert
  readonly record: RecordDeliveries
  /** Why nothing is sent to an endpoint; undefined where something is. */
  readonly reasonNot: (endpoint: Endpoint) => Promise<string | undefined>
  /** Tells the owner that an endpoint takes no more, and keeps others from trying. */
  readonly disable: (endpoint: Endpoint, reason: string) => Promise<void>
  /** It takes what it is sent again. */
  readonly enable: (endpoint: Endpoint) => Promise<void>
  readonly clock: Clock
  readonly random: () => number
  readonly counters: DeliverCounters
  readonly crash?: CrashPoint
}

/** A row of what happened to a job; `result` is absent where nothing was sent. */
function rowOf(
  { alert, endpoint, attempts }: DeliveryJob,
  about: { outcome: DeliveryOutcome; atMs: number; endMs: number; nextMs?: number | undefined; error?: string },
  result?: AttemptResult,
): DeliveryV1 {
  return {
    ...{ alert_id: alert.id, alert_type: alert.type, subject: alert.subject, endpoint },
    attempt: attempts + (result === undefined ? 0 : 1),
    at: formatTs(about.atMs),
    outcome: about.outcome,
    status: result?.status ?? 0,
    ms: Math.max(0, Math.round(about.endMs - about.atMs)),
    error: about.error ?? result?.error ?? '',
    next_try: about.nextMs === undefined ? null : formatTs(about.nextMs),
    answer: result?.answer ?? '',
  }
}

/** One job's turn: at most one attempt, its record, and what comes next. Rejects when the record could not be kept: then all is repeated. */
export function createDeliverer(options: DeliverOptions): (job: DeliveryJob) => Promise<AfterTurn> {
  const { endpointOf, turns, clock, counters, record, crash = noCrash } = options

  const drop = async (job: DeliveryJob, error: string): Promise<AfterTurn> => {
    const nowMs = clock.nowMs()
    await record([rowOf(job, { outcome: 'dropped', atMs: nowMs, endMs: nowMs, error })])
    counters.dropped += 1
    return { kind: 'over' }
  }

  const giveUp = async (job: DeliveryJob, reason: string, row: DeliveryV1): Promise<AfterTurn> => {
    await record([row])
    counters.givenUp += 1
    return { kind: 'given_up', reason: `${job.endpoint}: ${reason}` }
  }

  const settle = async (job: DeliveryJob, endpoint: Endpoint, atMs: number, result: AttemptResult) => {
    const endMs = clock.nowMs()
    const attempts = job.attempts + 1
    if (result.error === undefined) {
      if (job.alert.type === 'weir.endpoint.test') await options.enable(endpoint)
      await record([rowOf(job, { outcome: 'delivered', atMs, endMs }, result)])
      counters.delivered += 1
      return { kind: 'over' } as const
    }
    counters.failedAttempts += 1
    if (result.isGone === true) {
      await options.disable(endpoint, result.error)
      return giveUp(job, result.error, rowOf(job, { outcome: 'given_up', atMs, endMs }, result))
    }
    const nextMs = nextTryMs({ attempts, nowMs: endMs, retryAfterMs: result.retryAfterMs }, options.random)
    if (nextMs === undefined || nextMs > job.giveUpMs) {
      return giveUp(job, result.error, rowOf(job, { outcome: 'given_up', atMs, endMs }, result))
    }
    await record([rowOf(job, { outcome: 'failed', atMs, endMs, nextMs }, result)])
    return { kind: 'later', job: { ...job, attempts, dueMs: nextMs }, atMs: nextMs } as const
  }

  return async function deliverAlert(job) {
    const nowMs = clock.nowMs()
    if (nowMs < job.dueMs) return { kind: 'later', job, atMs: job.dueMs }
    const endpoint = endpointOf(job.endpoint)
    if (endpoint === undefined) {
      // Another process may have read of it before this one.
      const isYoung = nowMs < job.giveUpMs - giveUpAfterMs + policyBehindMs
      if (isYoung) return { kind: 'later', job, atMs: nowMs + unknownLookMs }
      return drop(job, 'the policy has no such endpoint any more')
    }
    // A test is what finds out whether an endpoint that is disabled works again.
    const isTest = job.alert.type === 'weir.endpoint.test'
    const reasonNot = isTest ? undefined : await options.reasonNot(endpoint)
    if (reasonNot !== undefined) return drop(job, reasonNot)
    if (nowMs > job.giveUpMs) {
      const error = 'not tried again: its time is over'
      return giveUp(job, error, rowOf(job, { outcome: 'given_up', atMs: nowMs, endMs: nowMs, error }))
    }
    if (endpoint.isPaused && !isTest) return { kind: 'later', job, atMs: nowMs + pausedLookMs }
    const turn = turns.enter(job.endpoint, nowMs)
    if (!turn.isFree) return { kind: 'later', job, atMs: turn.askAgainMs }
    // 1. Send. A crash after it sends again, under the same id.
    const result = await options.send(endpoint, job.alert)
    turns.leave(job.endpoint, result.error === undefined, clock.nowMs())
    crash('attempt')
    // 2. Record. A crash after it sends and records once more; the job is finished, or put off, after this.
    const after = await settle(job, endpoint, nowMs, result)
    crash('attempt_recorded')
    return after
  }
}
