import type { ServerResponse } from 'node:http'
import { type Decision, deniedByLimit } from '@weir/core/limits/decision.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import { isOfOneSubject, type Limit, longestPeriodMs } from '@weir/core/limits/limit.ts'
import { type ScopeValues, scopeValue } from '@weir/core/limits/limit-store.ts'
import type { CapacityForecast, QueueTicket } from './delay-queue.ts'
import type { DelayQueues } from './delay-queues.ts'
import { isGone, watchClient } from './waiting-client.ts'

/** A request that may wait, and for how long. */
export interface WaitContext {
  readonly limits: readonly Limit[]
  readonly scope: ScopeValues
  readonly cost: number
  /** How long to wait for any limit; without it, limits with `onExceed: delay` are waited for, as long as they say. */
  readonly waitMs: number | undefined
  /** The answer that the client waits for. Once it is closed the request waits no more. */
  readonly client: ServerResponse
}

/** One attempt to be decided, whole: its request may be another than the one before. */
interface Attempt {
  readonly request: { readonly limits: readonly Limit[]; readonly scope: ScopeValues }
  readonly decision: Decision
}

/** For limits whose policy says nothing of a queue. */
const queueMaxDefault = 100

/** What a limit counts under: requests with equal keys wait in one queue. */
function countKey(limit: Limit, scope: ScopeValues): string {
  const subject = isOfOneSubject(limit.by) ? scope.subject : ''
  let key = `${limit.name} ${subject.length} ${subject}`
  for (const part of limit.by) {
    const value = scopeValue(part, scope, limit.override)
    key += ` ${value.length} ${value}`
  }
  return key
}

const isWaitedFor = (limit: Limit, waitMs: number | undefined) =>
  refuses(limit) && (waitMs !== undefined || limit.onExceed.kind === 'delay')

const refusingOf = ({ exceededMask }: Decision, limits: readonly Limit[]) =>
  limits.filter((limit, at) => (exceededMask & (1 << at)) !== 0 && refuses(limit))

/**
 * The limit that the refused request waits for: the first that refused it, if that and all others that did may be
 * waited for. A request that may have been charged does not wait: its charge is settled first.
 */
export function limitToWaitFor(
  decision: Decision,
  limits: readonly Limit[],
  waitMs: number | undefined,
): Limit | undefined {
  const { allowed, reason, charged, deniedBy } = decision
  if (allowed || charged === 'unknown' || (reason !== 'limit' && reason !== 'blocked')) return undefined
  const limit = limits.find(({ name }) => name === deniedBy)
  if (limit === undefined || !isWaitedFor(limit, waitMs)) return undefined
  return refusingOf(decision, limits).every((one) => isWaitedFor(one, waitMs)) ? limit : undefined
}

/** The limit that other requests wait for already: a request that comes now has to come after them. */
export function limitWaitedFor(
  queues: DelayQueues,
  { limits, scope, cost, waitMs }: Omit<WaitContext, 'client'>,
): Limit | undefined {
  // A request that costs nothing needs no capacity, and one that costs too much would wait in vain.
  if (cost === 0) return undefined
  return limits.find(
    (limit) => cost <= limit.capacity && isWaitedFor(limit, waitMs) && queues.has(countKey(limit, scope)),
  )
}

/**
 * How waiting ended. `attempt` is undefined for a request that was never decided, because others waited before it to
 * the end.
 */
export interface Waited<A> {
  readonly attempt: A | undefined
  readonly decision: Decision
}

/** What a request waits for, and what happens meanwhile. */
interface HowToWait<A> {
  readonly limit: Limit
  /** The refusal that it waits after; undefined for a request that comes after others and was not decided. */
  readonly first: A | undefined
  readonly again: () => Promise<A>
  /** Called once, if the request comes to wait. */
  readonly joined: () => void
}

/**
 * Lets a request wait for capacity in a limit, and then in the one that refuses it next, until it is decided otherwise,
 * its time is over, or its client has left. In the last two cases it gets the refusal that it would have got.
 */
export function waitForCapacity<A extends Attempt>(
  queues: DelayQueues,
  context: WaitContext,
  how: HowToWait<A>,
): Promise<Waited<A>> {
  return new Wait(queues, context, how).run()
}

class Wait<A extends Attempt> {
  readonly #queues: DelayQueues
  readonly #context: WaitContext
  readonly #how: HowToWait<A>
  readonly #deadlineMs: number
  /** The limit that is waited for. */
  #limit: Limit
  #attempt: A | undefined
  #attemptMs: number
  /** Limits and scope are those of the last attempt's policy: the bits of its decision mean these. */
  #limits: readonly Limit[]
  #scope: ScopeValues

  constructor(queues: DelayQueues, context: WaitContext, how: HowToWait<A>) {
    const { limit, first } = how
    this.#queues = queues
    this.#context = context
    this.#how = how
    this.#limit = limit
    this.#attempt = first
    this.#limits = context.limits
    this.#scope = context.scope
    this.#attemptMs = queues.nowMs()
    const ofLimit = limit.onExceed.kind === 'delay' ? limit.onExceed.delayMs : 0
    this.#deadlineMs = this.#attemptMs + (context.waitMs ?? ofLimit)
  }

  async run(): Promise<Waited<A>> {
    const { client } = this.#context
    let ticket = this.#enqueue()
    if (ticket !== undefined) this.#how.joined()
    while (ticket !== undefined) {
      const unwatch = watchClient(client, ticket.cancel)
      try {
        const end = await this.#useGrants(ticket)
        if (end === 'over') return { attempt: this.#attempt, decision: this.#refusalNow() }
        if (end === 'decided') break
      } finally {
        ticket.release(false)
        unwatch()
      }
      ticket = this.#enqueue()
    }
    return { attempt: this.#attempt, decision: this.#attempt?.decision ?? this.#refusalNow() }
  }

  get #key(): string {
    return countKey(this.#limit, this.#scope)
  }

  #enqueue(): QueueTicket | undefined {
    const { onExceed } = this.#limit
    if (isGone(this.#context.client)) return undefined
    return this.#queues.enqueue(this.#key, {
      subject: this.#scope.subject,
      deadlineMs: this.#deadlineMs,
      pacingMs: this.#pacingMs,
      queueMax: onExceed.kind === 'delay' ? onExceed.queueMax : queueMaxDefault,
      ...(this.#attempt === undefined ? { capacityMs: 0, retryMs: 0 } : this.#forecastAfter(this.#attempt)),
    })
  }

  get #pacingMs(): number {
    const { span, size } = this.#limit
    const spanMs = span.kind === 'window' ? span.ms : longestPeriodMs[span.unit]
    return (this.#context.cost * spanMs) / Math.max(1, size)
  }

  /**
   * When the limit has capacity. A refusal says how long the slowest of all refusing limits takes: if there are others,
   * all that is known of this one is that it admits one request in one pace.
   */
  #forecastAfter({ decision }: A): CapacityForecast {
    const retryMs = decision.retryAfterMs
    const isAlone = refusingOf(decision, this.#limits).every((one) => one === this.#limit)
    return { retryMs, capacityMs: isAlone ? retryMs : Math.min(retryMs, this.#pacingMs) }
  }

  async #useGrants(ticket: QueueTicket): Promise<'decided' | 'over' | 'elsewhere'> {
    for (;;) {
      if ((await ticket.wait()) !== 'granted' || isGone(this.#context.client)) return 'over'
      const attempt = await this.#how.again()
      const { decision } = attempt
      this.#attempt = attempt
      this.#attemptMs = this.#queues.nowMs()
      const key = this.#key
      this.#limits = attempt.request.limits
      this.#scope = attempt.request.scope
      const next = limitToWaitFor(decision, this.#limits, this.#context.waitMs)
      if (next === undefined) {
        ticket.release(decision.charged === 'yes')
        return 'decided'
      }
      this.#limit = next
      if (this.#key !== key) return 'elsewhere'
      if (!ticket.requeue(this.#forecastAfter(attempt))) return 'decided'
    }
  }

  /** The last refusal, as it stands by now; or one for a request that waited behind others alone. */
  #refusalNow(): Decision {
    const aheadMs = Math.max(1, this.#queues.waitMs(this.#key))
    const decision = this.#attempt?.decision
    if (decision === undefined) {
      // Others wait for all the capacity of this limit.
      const retryAfterMs = Math.ceil(aheadMs)
      const state = { used: this.#limit.capacity, resetMs: retryAfterMs, retryAfterMs }
      return deniedByLimit('limit', this.#limit, { limits: this.#limits }, state)
    }
    const elapsedMs = this.#queues.nowMs() - this.#attemptMs
    const leftMs = Math.max(aheadMs, decision.retryAfterMs - elapsedMs)
    const limits = decision.limits.map((state) => ({
      ...state,
      resetMs: Math.max(0, Math.ceil(state.resetMs - elapsedMs)),
    }))
    return { ...decision, retryAfterMs: Math.ceil(leftMs), limits }
  }
}
