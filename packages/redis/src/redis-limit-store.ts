import type { Clock } from '@weir/core/clock.ts'
import { checkLimitRequest, unlimitedDecision } from '@weir/core/limits/check-limit-request.ts'
import type { Charged, Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import {
  type CallParts,
  decodeReply,
  encodeCall,
  type Operation,
  requestsPerCallMax,
} from '@weir/core/limits/script-codec.ts'
import { unavailableDecision } from '@weir/core/limits/unavailable.ts'
import type { periodBoundaries } from '@weir/core/policy/calendar.ts'
import type { Redis } from 'ioredis'
import { readDecideScript } from './decide-script.ts'
import { blockKey, limitKey, markerKey } from './keys.ts'
import { readScriptError } from './script-error.ts'

/** A call takes well under a millisecond; this is for the network's worst moments, and below what a person notices. */
const deadlineMsDefault = 25

/** Requests that may wait for a call: 32 full calls, more than can be decided within the deadline anyway. */
const queueMax = 1_024

export interface RedisLimitStoreOptions {
  /** Of role `limiter`; see connect.ts. The caller closes it, after the store. */
  readonly redis: Redis
  /** Only for finding calendar boundaries; counts go by Redis's clock. */
  readonly clock: Clock
  /** With its memory, see createBoundaryCache: it is asked for every limit with a calendar period. */
  readonly periodBoundaries: typeof periodBoundaries
  readonly deadlineMs?: number
  /** A test's time for the script; undefined for Redis's clock. */
  readonly now?: () => number | undefined
}

/** Counts since the start, for metrics; only ever growing. */
export interface LimitStoreCounters {
  readonly calls: number
  readonly decisions: number
  readonly unavailable: number
  /** Replies that came after their requests had been answered without them. */
  readonly lateReplies: number
  /** Limits begun anew although their span had not ended: a clock was set back, or a limit shortened. */
  readonly rebased: number
  /** Failed calls by Redis's error code; `NOT_SENT` and `CONNECTION` where Redis said nothing, `REPLY` for an unreadable one. */
  readonly scriptErrors: Readonly<Record<string, number>>
}

export interface RedisLimitStore extends LimitStore {
  /** A snapshot. */
  readonly counters: LimitStoreCounters
  /** Answers what still waits as unavailable, and whatever comes later. The connection stays open. */
  close(): void
}

/** A store whose counts are in Redis, exact over all processes that share it. */
export const createRedisLimitStore = (options: RedisLimitStoreOptions): RedisLimitStore =>
  new GatheringLimitStore(options)

interface Waiting {
  readonly request: LimitRequest
  readonly arrivedMs: number
  readonly resolve: (decision: Decision) => void
  readonly reject: (error: Error) => void
}

/** One call under way. `answered`: its requests were answered without it, because it took too long. */
interface Call {
  readonly waiting: readonly Waiting[]
  readonly operations: readonly Operation[]
  answered: boolean
}

/**
 * Gathers decisions into calls of decide.lua. One call is under way at a time; what arrives meanwhile goes with the next,
 * so calls grow with the load. Nothing is ever sent twice, except a call that Redis did not run for want of the script.
 *
 * Idle: the first arrival schedules a call for the end of this turn of the event loop.
 * Under way: arrivals wait. No request waits longer than the deadline, the call's oldest decides.
 * Overdue: the call's requests and all that wait were answered as unavailable, and arrivals are at once, until Redis
 * answers that call or the connection ends.
 */
class GatheringLimitStore implements RedisLimitStore {
  readonly #redis: Redis
  readonly #deadlineMs: number
  readonly #clock: Clock
  readonly #now: () => number | undefined
  readonly #boundaries: typeof periodBoundaries
  readonly #scriptErrors: Record<string, number> = {}
  readonly #counters = { calls: 0, decisions: 0, unavailable: 0, lateReplies: 0, rebased: 0 }
  #script = readDecideScript(6)
  readonly #waiting: Waiting[] = []
  #call: Call | undefined
  #scheduled = false
  #closed = false

  constructor(options: RedisLimitStoreOptions) {
    this.#redis = options.redis
    this.#deadlineMs = options.deadlineMs ?? deadlineMsDefault
    this.#clock = options.clock
    this.#now = options.now ?? (() => undefined)
    this.#boundaries = options.periodBoundaries
    this.#boundaries('day', 'UTC', 1, this.#clock.nowMs()) // the first use takes longer than a request's deadline
    this.#redis.on('ready', this.#prepare)
    if (this.#redis.status === 'ready') void this.#prepare()
  }

  get counters(): LimitStoreCounters {
    return { ...this.#counters, scriptErrors: { ...this.#scriptErrors } }
  }

  async refund(): Promise<boolean> {
    return false
  }

  close(): void {
    this.#closed = true
    this.#redis.off('ready', this.#prepare)
    this.#answerAll(this.#waiting.splice(0), 'no')
  }

  decide(request: LimitRequest): Promise<Decision> {
    return new Promise((resolve, reject) => {
      checkLimitRequest(request)
      if (request.limits.length === 0) return resolve(unlimitedDecision)
      const gone = this.#closed || this.#call?.answered === true || this.#redis.status !== 'ready'
      if (gone || this.#waiting.length >= queueMax) {
        this.#counters.unavailable += 1
        return resolve(unavailableDecision(request, 'no'))
      }
      this.#waiting.push({ request, arrivedMs: performance.now(), resolve, reject })
      this.#schedule()
    })
  }

  /** The call starts when everything that this turn of the event loop read has arrived. */
  #schedule(): void {
    if (this.#scheduled || this.#call !== undefined || this.#waiting.length === 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#start()
    })
  }

  #start(): void {
    const waiting = this.#waiting.splice(0, requestsPerCallMax)
    const [oldest] = waiting
    if (oldest === undefined) return
    const leftMs = oldest.arrivedMs + this.#deadlineMs - performance.now()
    if (leftMs <= 0) {
      this.#answerAll(waiting, 'no')
      this.#schedule()
      return
    }
    const call: Call = {
      waiting,
      operations: waiting.map(({ request }) => ({ kind: 'decide', request })),
      answered: false,
    }
    this.#call = call
    // A turn that took longer than the deadline must not beat a reply that is already here: it is read before setImmediate.
    const timer = setTimeout(() => setImmediate(() => this.#overdue(call)), Math.ceil(leftMs))
    this.#run(call).then(
      (reply) => this.#finish(call, timer, () => this.#settle(call, reply)),
      (error: unknown) => this.#finish(call, timer, () => this.#fail(call, error)),
    )
  }

  async #run(call: Call): Promise<unknown> {
    const { keys, argv } = encodeCall(call.operations, this.#parts())
    const { sha1, source } = this.#script
    this.#counters.calls += 1
    try {
      return await this.#redis.callBuffer('evalsha', sha1, keys.length, ...keys, ...argv)
    } catch (error) {
      if (call.answered || readScriptError(error).code !== 'NOSCRIPT') throw error
      return await this.#redis.callBuffer('eval', source, keys.length, ...keys, ...argv)
    }
  }

  #parts(): CallParts {
    const testMs = this.#now()
    const nowMs = testMs ?? this.#clock.nowMs()
    return {
      keyOf: limitKey,
      blockKeyOf: blockKey,
      markerKeyOf: markerKey,
      boundariesOf: ({ span }: Limit, { timeZone, anchor }: LimitRequest) =>
        span.kind === 'period' ? this.#boundaries(span.unit, timeZone, anchor, nowMs) : undefined,
      nowMs: testMs,
    }
  }

  #finish(call: Call, timer: NodeJS.Timeout, settle: () => void): void {
    clearTimeout(timer)
    if (this.#call === call) this.#call = undefined
    settle()
    this.#schedule()
  }

  #settle(call: Call, reply: unknown): void {
    if (call.answered) {
      this.#counters.lateReplies += 1
      return
    }
    const { outcomes, rebased } = decodeReply(reply, call.operations)
    this.#counters.rebased += rebased
    for (const [at, { resolve, reject }] of call.waiting.entries()) {
      const outcome = outcomes[at]
      if (outcome === undefined) reject(new Error('decide.lua left a request out'))
      else if ('refunded' in outcome) reject(new Error('decide.lua refunded what was to be decided'))
      else if ('malformed' in outcome) reject(new Error(`decide.lua found the request's ${outcome.malformed} wrong`))
      else resolve(outcome)
    }
    this.#counters.decisions += outcomes.length
  }

  #fail(call: Call, error: unknown): void {
    const { code, charged } = readScriptError(error)
    this.#scriptErrors[code] = (this.#scriptErrors[code] ?? 0) + 1
    if (!call.answered) this.#answerAll(call.waiting, charged)
  }

  #overdue(call: Call): void {
    if (this.#call !== call || call.answered) return
    call.answered = true
    this.#answerAll(call.waiting, 'unknown')
    this.#answerAll(this.#waiting.splice(0), 'no')
  }

  #answerAll(waiting: readonly Waiting[], charged: Charged): void {
    this.#counters.unavailable += waiting.length
    for (const { request, resolve } of waiting) resolve(unavailableDecision(request, charged))
  }

  /** After every connect: which script this server takes, and that it has it. The first request need not wait for that. */
  readonly #prepare = async (): Promise<void> => {
    try {
      const info = await this.#redis.info('server')
      this.#script = readDecideScript(Number(/^redis_version:(\d+)/m.exec(info)?.[1] ?? 6))
      await this.#redis.script('LOAD', this.#script.source)
    } catch {
      // The connection ended, and prepares again; or INFO is not allowed: the script for 6 runs everywhere, and NOSCRIPT loads it.
    }
  }
}
