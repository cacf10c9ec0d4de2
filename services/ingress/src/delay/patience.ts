import type { ServerResponse } from 'node:http'
import { type Decision, deniedByLimit } from '@weir/core/limits/decision.ts'
import { refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit, Span } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import { limitKey } from '@weir/redis/keys.ts'
import type { Place, Room } from './delay-queue.ts'
import type { DelayQueues } from './delay-queues.ts'
import { isGone, watchClient } from './waiting-client.ts'

/** Who may be kept waiting for room, and how. */
export interface Patient {
  readonly limits: readonly Limit[]
  readonly scope: ScopeValues
  readonly cost: number
  /** For every limit, so long; without it for those with `onExceed: delay`, as long as they say. */
  readonly waitMs: number | undefined
  /** The answer that is waited for: closed, nobody waits any more. */
  readonly client: ServerResponse
}

/** One attempt to be decided, whole: its request may be another than the one before. */
interface Attempt {
  readonly request: { readonly limits: readonly Limit[]; readonly scope: ScopeValues }
  readonly decision: Decision
}

/** Of limits whose policy says nothing of a queue. */
const queueMaxDefault = 100
const periodMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_592_000_000 } as const
const spanMs = (span: Span) => (span.kind === 'window' ? span.ms : periodMs[span.unit])

const isWaitedFor = (limit: Limit, waitMs: number | undefined) =>
  refuses(limit) && (waitMs !== undefined || limit.onExceed.kind === 'delay')

const refusingOf = ({ refusedBits }: Decision, limits: readonly Limit[]) =>
  limits.filter((limit, at) => (refusedBits & (1 << at)) !== 0 && refuses(limit))

/**
 * The limit whose room would admit what was refused, if that and all others that refused it are some to wait for. What may have been
 * charged is settled first.
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

/**
 * When that limit has room, by a refusal. A refusal says how long all limits take that refuse, the longest of them: if others do, all
 * that is known of this one is that it gives a turn's room in a turn's time.
 */
function roomOf(decision: Decision, limits: readonly Limit[], limit: Limit, spacingMs: number): Room {
  const retryMs = decision.retryAfterMs
  const isAlone = refusingOf(decision, limits).every((one) => one === limit)
  return { retryMs, roomMs: isAlone ? retryMs : Math.min(retryMs, spacingMs) }
}

/** The limit for whose room others wait already: whoever comes now has to come after them. */
export function limitWaitedFor(
  queues: DelayQueues,
  { limits, scope, cost, waitMs }: Omit<Patient, 'client'>,
): Limit | undefined {
  // What costs nothing needs no room, and what costs too much would wait in vain.
  if (cost === 0) return undefined
  return limits.find(
    (limit) => cost <= limit.capacity && isWaitedFor(limit, waitMs) && queues.has(limitKey(limit, scope)),
  )
}

/** What waiting came to. `attempt` is undefined for whoever was never decided on, because others waited before it to the end. */
export interface Waited<A> {
  readonly attempt: A | undefined
  readonly decision: Decision
}

/** For whose room, and what is done meanwhile. */
interface HowToWait<A> {
  readonly limit: Limit
  /** How it was refused; undefined for whoever comes after others and was not decided on. */
  readonly first: A | undefined
  readonly again: () => Promise<A>
  /** Called once, if it comes to waiting. */
  readonly joined: () => void
}

/**
 * Keeps a request waiting for room in a limit, and then in whichever refuses it next, until it is decided on otherwise, its time is
 * over, or its client has gone: the last two are the refusal that it would have been.
 */
export function waitForRoom<A extends Attempt>(
  queues: DelayQueues,
  patient: Patient,
  how: HowToWait<A>,
): Promise<Waited<A>> {
  return new Wait(queues, patient, how).run()
}

class Wait<A extends Attempt> {
  readonly #queues: DelayQueues
  readonly #patient: Patient
  readonly #how: HowToWait<A>
  readonly #deadlineMs: number
  /** Whose room is waited for. */
  #limit: Limit
  #attempt: A | undefined
  #attemptMs: number
  /** By the policy of the last attempt, as is the scope: bits of its decision mean these. */
  #limits: readonly Limit[]
  #scope: ScopeValues

  constructor(queues: DelayQueues, patient: Patient, how: HowToWait<A>) {
    const { limit, first } = how
    this.#queues = queues
    this.#patient = patient
    this.#how = how
    this.#limit = limit
    this.#attempt = first
    this.#limits = patient.limits
    this.#scope = patient.scope
    this.#attemptMs = queues.nowMs()
    const ofLimit = limit.onExceed.kind === 'delay' ? limit.onExceed.delayMs : 0
    this.#deadlineMs = this.#attemptMs + (patient.waitMs ?? ofLimit)
  }

  async run(): Promise<Waited<A>> {
    const { client } = this.#patient
    let place = this.#join()
    if (place !== undefined) this.#how.joined()
    while (place !== undefined) {
      const unwatch = watchClient(client, place.leave)
      try {
        const end = await this.#takeTurns(place)
        if (end === 'over') return { attempt: this.#attempt, decision: this.#refusalNow() }
        if (end === 'decided') break
      } finally {
        place.done(false)
        unwatch()
      }
      place = this.#join()
    }
    return { attempt: this.#attempt, decision: this.#attempt?.decision ?? this.#refusalNow() }
  }

  get #key(): string {
    return limitKey(this.#limit, this.#scope)
  }

  #join(): Place | undefined {
    const { onExceed } = this.#limit
    if (isGone(this.#patient.client)) return undefined
    return this.#queues.join(this.#key, {
      ...{ subject: this.#scope.subject, deadlineMs: this.#deadlineMs, spacingMs: this.#spacingMs },
      ...(this.#attempt === undefined ? { roomMs: 0, retryMs: 0 } : this.#roomAfter(this.#attempt)),
      queueMax: onExceed.kind === 'delay' ? onExceed.queueMax : queueMaxDefault,
    })
  }

  get #spacingMs(): number {
    const { span, size } = this.#limit
    return (this.#patient.cost * spanMs(span)) / Math.max(1, size)
  }

  #roomAfter({ decision }: A): Room {
    return roomOf(decision, this.#limits, this.#limit, this.#spacingMs)
  }

  async #takeTurns(place: Place): Promise<'decided' | 'over' | 'elsewhere'> {
    for (;;) {
      if ((await place.turn()) !== 'yours' || isGone(this.#patient.client)) return 'over'
      const attempt = await this.#how.again()
      const { decision } = attempt
      this.#attempt = attempt
      this.#attemptMs = this.#queues.nowMs()
      const key = this.#key
      this.#limits = attempt.request.limits
      this.#scope = attempt.request.scope
      const next = limitToWaitFor(decision, this.#limits, this.#patient.waitMs)
      if (next === undefined) {
        place.done(decision.charged === 'yes')
        return 'decided'
      }
      this.#limit = next
      if (this.#key !== key) return 'elsewhere'
      if (!place.refused(this.#roomAfter(attempt))) return 'decided'
    }
  }

  /** The refusal that was last, as it stands by now; or one for whoever waited behind others alone. */
  #refusalNow(): Decision {
    const aheadMs = Math.max(1, this.#queues.waitMs(this.#key))
    const decision = this.#attempt?.decision
    if (decision === undefined) return refusalBy(this.#limit, this.#limits, Math.ceil(aheadMs))
    const elapsedMs = this.#queues.nowMs() - this.#attemptMs
    const leftMs = Math.max(aheadMs, decision.retryAfterMs - elapsedMs)
    const limits = decision.limits.map((state) => ({
      ...state,
      resetMs: Math.max(0, Math.ceil(state.resetMs - elapsedMs)),
    }))
    return { ...decision, retryAfterMs: Math.ceil(leftMs), limits }
  }
}

/** Others wait for all the room that this limit has. */
function refusalBy(limit: Limit, limits: readonly Limit[], retryAfterMs: number): Decision {
  const state = { used: limit.capacity, resetMs: retryAfterMs, retryAfterMs }
  return deniedByLimit('limit', limit, { limits }, state)
}
