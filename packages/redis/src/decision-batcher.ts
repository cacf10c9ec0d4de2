import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import type { Charged, Decision } from '@weir/core/limits/decision.ts'
import { type Charge, chargedLimits, type LimitRequest, type SlotCharge } from '@weir/core/limits/limit-store.ts'
import {
  type CallParts,
  decodeReply,
  encodeCall,
  type Outcome,
  requestsPerCallMax,
  type ScriptCall,
  type ScriptReply,
} from '@weir/core/limits/script-codec.ts'
import { unavailableDecision } from '@weir/core/limits/unavailable.ts'
import { timeoutsMax } from './circuit-breaker.ts'
import { LaterSlots, laterSlot } from './later-slots.ts'
import type { StoreCounts } from './limit-store-counters.ts'
import type { CallTarget } from './script-client.ts'
import { readScriptError } from './script-error.ts'

interface AnyTask {
  readonly request: LimitRequest
  /** On the monotonic clock; the deadline counts from here. */
  readonly arrivedMs: number
  /** Its batch failed because of one of the requests: each of them then goes in a call of its own, once. */
  isIsolated: boolean
  readonly reject: (error: Error) => void
}

interface DecideTask extends AnyTask {
  readonly kind: 'decide'
  readonly resolve: (decision: Decision) => void
  /** Set when the request was denied at its deadline: settles `Decision.lateRefund`. */
  onLateRefund: (() => void) | undefined
}

interface RefundTask extends AnyTask {
  readonly kind: 'refund' | 'renew'
  readonly charge: Charge
  /** Redis's clock; 0 for nothing, and below it without an answer. */
  readonly resolve: (refundedAtUs: number) => void
}

type Task = DecideTask | RefundTask

/** What all batchers of a store share. */
export interface BatcherOptions {
  readonly deadlineMs: number
  readonly counts: StoreCounts
  readonly parts: () => CallParts
}

/** One call in flight. `isTimedOut`: its requests were answered at the deadline, without it. */
interface Call {
  readonly tasks: readonly Task[]
  readonly sentMs: number
  isTimedOut: boolean
}

/** A refund that Redis did not answer, or was not sent. */
const [unanswered, unsent] = [-1, -2]

/** What it charged may be given back however often that is asked: its marker says whether it is open. */
const isHold = ({ reservation, units }: LimitRequest) => reservation !== undefined && units !== undefined

/** How often refunds of holds are repeated while Redis does not make them. */
const [repeatMsMin, repeatMsMax] = [100, 5_000]
/** Requests that may wait for a call: 32 full calls, more than can be decided within the deadline anyway. */
const waitingMax = 1_024
/** Refunds of the calls that may time out before the circuit opens; those of another are counted as lost. */
const pendingRefundsMax = timeoutsMax * requestsPerCallMax

/**
 * Batches requests into calls of decide.lua. One call is in flight at a time, and the requests that arrive meanwhile
 * are the next batch, so batches grow with the load.
 *
 * - Idle: the first arrival schedules a call for the end of this tick of the event loop.
 * - In flight: arrivals wait. The deadline of the oldest request of a call is the deadline of the call.
 * - Timed out: the requests of the call are answered as unavailable, and with them those that wait and have less than
 *   half of their deadline left. The others are the next batch.
 * - Down, after some calls in a row that timed out: so is everything that waits, and arrivals are, immediately, until
 *   the target is available again.
 *
 * A request that Redis may have run is never sent again. If a call that timed out charged a request that was denied at
 * the deadline, the charge is refunded, once, with the first call after the target is available again.
 */
export class DecisionBatcher {
  readonly #target: CallTarget
  readonly #options: BatcherOptions
  readonly #counts: StoreCounts
  readonly #onIdle: () => void
  #waiting: Task[] = []
  #pendingRefunds: RefundTask[] = []
  readonly #laterSlots: LaterSlots
  #call: Call | undefined
  #isScheduled = false
  #isClosed = false
  #repeatMs = repeatMsMin
  #repeatTimer: NodeJS.Timeout | undefined

  constructor(target: CallTarget, options: BatcherOptions, onIdle: () => void = () => undefined) {
    this.#target = target
    this.#options = options
    this.#counts = options.counts
    this.#onIdle = onIdle
    this.#laterSlots = new LaterSlots(
      async ({ request, kind }) => (await this.changeSlots({ request, atUs: 0 }, kind, performance.now())) !== unsent,
      (run) => target.onceAvailable(run),
    )
  }

  decide(request: LimitRequest, arrivedMs: number): Promise<Decision> {
    return new Promise((resolve, reject) =>
      this.#add({ kind: 'decide', request, arrivedMs, isIsolated: false, resolve, reject, onLateRefund: undefined }),
    )
  }

  /** Resolves to Redis's clock if anything was refunded, or renewed; else to 0, or below. */
  refund(
    request: LimitRequest,
    charge: Charge,
    arrivedMs: number,
    kind: RefundTask['kind'] = 'refund',
  ): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#add({ kind, request, charge, arrivedMs, isIsolated: false, resolve, reject }),
    )
  }

  /** As `refund`, for slots. Those of a gateway, with `atUs` 0, follow later if they are not sent now. */
  async changeSlots({ request, atUs }: SlotCharge, kind: RefundTask['kind'], arrivedMs: number): Promise<number> {
    const charge = { atUs, exceededMask: 0 }
    const slots = request.limits.filter(countsInFlight)
    if (atUs > 0 || slots.length === 0) return await this.refund(request, charge, arrivedMs, kind)
    const later = () => laterSlot(kind, { ...request, limits: slots }, this.#options.parts())
    const isCancelled = this.#laterSlots.size > 0 && this.#laterSlots.cancels(later())
    const limits = isCancelled ? request.limits.filter((limit) => !countsInFlight(limit)) : request.limits
    if (limits.length === 0) return 0
    const changedAtUs = await this.refund({ ...request, limits }, charge, arrivedMs, kind)
    if (changedAtUs === unsent && !isCancelled && !this.#isClosed) this.#laterSlots.add(later())
    return changedAtUs
  }

  /** Answers the waiting requests as unavailable, and all that arrive later. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#repeatTimer)
    this.#pendingRefunds = []
    this.#laterSlots.clear()
    this.#answerWaiting()
  }

  #add(task: Task): void {
    if (this.#isClosed || this.#target.isDown || this.#waiting.length >= waitingMax) {
      this.#answer(task, 'no')
      this.#goOn()
      return
    }
    this.#waiting.push(task)
    this.#schedule()
  }

  get #isIdle(): boolean {
    return this.#call === undefined && this.#waiting.length + this.#pendingRefunds.length + this.#laterSlots.size === 0
  }

  /** The call starts when everything that this tick of the event loop read has arrived. */
  #schedule(): void {
    if (this.#isScheduled || this.#call !== undefined || this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#start()
    })
  }

  /** Takes the next batch: the requests that wait longest, or the first alone. */
  #takeBatch(): Task[] {
    const max = Math.min(this.#waiting.length, requestsPerCallMax)
    let count = 0
    while (count < max && this.#waiting[count]?.isIsolated === false) count += 1
    return this.#waiting.splice(0, Math.max(1, count))
  }

  #start(): void {
    if (this.#call !== undefined) return
    const tasks = this.#takeBatch()
    const [oldest] = tasks
    const leftMs = oldest === undefined ? 0 : oldest.arrivedMs + this.#options.deadlineMs - performance.now()
    if (leftMs <= 0 || this.#target.isDown) {
      this.#answerAll(tasks, 'no')
      this.#goOn()
      return
    }
    const encoded = this.#encode(tasks)
    if (encoded === undefined) {
      this.#goOn()
      return
    }
    const call: Call = { tasks, sentMs: performance.now(), isTimedOut: false }
    this.#call = call
    this.#counts.callSize.observe(tasks.length)
    // A tick longer than the deadline must not beat a reply that has arrived: replies are read before setImmediate.
    const timer = setTimeout(() => setImmediate(() => this.#timeOut(call)), Math.ceil(leftMs))
    this.#target
      .send(encoded, () => call.isTimedOut)
      .then(
        (reply) => this.#finish(call, timer, () => this.#onReply(call, reply)),
        (error: unknown) => this.#finish(call, timer, () => this.#fail(call, error)),
      )
  }

  /** Undefined if one of the requests cannot be encoded. */
  #encode(tasks: readonly Task[]): ScriptCall | undefined {
    try {
      return encodeCall(tasks, this.#options.parts())
    } catch (error) {
      this.#retryIndividually(tasks, error)
      return undefined
    }
  }

  #finish(call: Call, timer: NodeJS.Timeout, settle: () => void): void {
    clearTimeout(timer)
    if (this.#call === call) this.#call = undefined
    settle()
    this.#goOn()
  }

  #goOn(): void {
    if (this.#isIdle) this.#onIdle()
    else this.#schedule()
  }

  #onReply(call: Call, reply: unknown): void {
    this.#counts.callDuration.observe((performance.now() - call.sentMs) / 1_000)
    let read: ScriptReply
    try {
      read = decodeReply(reply, call.tasks)
    } catch (error) {
      this.#counts.countError('REPLY', error)
      if (!call.isTimedOut) this.#answerAll(call.tasks, 'unknown')
      return
    }
    this.#counts.rebased += read.rebased
    if (call.isTimedOut) this.#onLateReply(call, read.outcomes)
    else this.#resolveAll(call, read.outcomes)
  }

  #resolveAll(call: Call, outcomes: readonly Outcome[]): void {
    for (const [at, task] of call.tasks.entries()) {
      const outcome = outcomes[at]
      if (task.kind === 'decide' && outcome !== undefined && 'allowed' in outcome) {
        task.resolve(outcome)
      } else if (task.kind !== 'decide' && outcome !== undefined && 'refundedAtUs' in outcome)
        task.resolve(outcome.refundedAtUs)
      else this.#onMalformed(task, outcome !== undefined && 'malformed' in outcome ? outcome.malformed : 'shape')
    }
  }

  /** A change of policy may bring a key two definitions in one call: the second request is sent again. */
  #onMalformed(task: Task, malformed: string): void {
    if (malformed !== 'definition' || task.isIsolated) {
      task.reject(new Error(`decide.lua found the request's ${malformed} wrong`))
      return
    }
    task.isIsolated = true
    this.#waiting.unshift(task)
  }

  /** The clients were answered at the deadline. A request that was denied then, and charged now, gets a refund. */
  #onLateReply(call: Call, outcomes: readonly Outcome[]): void {
    this.#counts.lateReplies += 1
    this.#target.onLateReply()
    for (const [at, task] of call.tasks.entries()) {
      const outcome = outcomes[at]
      if (task.kind !== 'decide' || outcome === undefined || !('charged' in outcome)) continue
      const { request, onLateRefund } = task
      if (outcome.charged === 'yes' && onLateRefund !== undefined) this.#queueRefund(request, outcome, onLateRefund)
    }
    if (this.#pendingRefunds.length > 0) this.#target.onceAvailable(() => this.#flushRefunds())
  }

  #queueRefund(request: LimitRequest, charge: Charge, onLateRefund: () => void): void {
    if (this.#isClosed || this.#pendingRefunds.length >= pendingRefundsMax) {
      this.#counts.lateRefundsLost += 1
      return
    }
    const resolve = (refundedAtUs: number) => {
      const isAnswered = refundedAtUs >= 0
      if (isAnswered) this.#repeatMs = repeatMsMin
      if (refundedAtUs > 0) {
        this.#counts.lateRefunds += 1
        onLateRefund()
      } else if (!isHold(request)) this.#counts.lateRefundsLost += 1
      else if (!isAnswered) this.#repeatRefund(request, charge, onLateRefund)
    }
    const reject = () => resolve(0)
    this.#pendingRefunds.push({ kind: 'refund', request, charge, arrivedMs: 0, isIsolated: false, resolve, reject })
  }

  /** Until Redis has answered, with growing pauses: it may be there and refuse every write. */
  #repeatRefund(request: LimitRequest, charge: Charge, onLateRefund: () => void): void {
    this.#queueRefund(request, charge, onLateRefund)
    if (this.#isClosed || this.#repeatTimer !== undefined) return
    const flush = () => {
      this.#repeatTimer = undefined
      this.#flushRefunds()
    }
    this.#repeatTimer = setTimeout(() => this.#target.onceAvailable(flush), this.#repeatMs).unref()
    this.#repeatMs = Math.min(2 * this.#repeatMs, repeatMsMax)
  }

  #flushRefunds(): void {
    const arrivedMs = performance.now()
    this.#waiting.unshift(...this.#pendingRefunds.map((task) => ({ ...task, arrivedMs })))
    this.#pendingRefunds = []
    this.#goOn()
  }

  #fail(call: Call, error: unknown): void {
    const { code, charged, isAboutTheCall } = readScriptError(error)
    this.#counts.countError(code, error)
    if (call.isTimedOut) {
      this.#target.onLateReply()
      return
    }
    if (isAboutTheCall) this.#retryIndividually(call.tasks, error)
    else this.#answerAll(call.tasks, charged)
  }

  /** Redis ran nothing because of one of the requests: each is sent alone, once, so that the wrong one fails alone. */
  #retryIndividually(tasks: readonly Task[], error: unknown): void {
    const [first] = tasks
    if (tasks.length === 1 && first !== undefined) {
      first.reject(error instanceof Error ? error : new Error('a request cannot be encoded', { cause: error }))
      return
    }
    for (const task of tasks) task.isIsolated = true
    this.#waiting.unshift(...tasks)
  }

  #timeOut(call: Call): void {
    if (this.#call !== call || call.isTimedOut) return
    call.isTimedOut = true
    this.#call = undefined
    this.#target.onTimeout()
    for (const task of call.tasks) this.#answer(task, 'unknown', true)
    if (this.#target.isDown) this.#answerWaiting()
    else this.#answerOverdue()
    this.#goOn()
  }

  /** A call of requests that are nearly due would time out in a moment, and say nothing about the target. */
  #answerOverdue(): void {
    const fromMs = performance.now() - this.#options.deadlineMs / 2
    const overdue = this.#waiting.filter(({ arrivedMs }) => arrivedMs < fromMs)
    this.#waiting = this.#waiting.filter(({ arrivedMs }) => arrivedMs >= fromMs)
    this.#answerAll(overdue, 'no')
  }

  #answerWaiting(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#answerAll(waiting, 'no')
  }

  #answerAll(tasks: readonly Task[], charged: Charged): void {
    for (const task of tasks) this.#answer(task, charged)
  }

  /**
   * Answers a task without Redis. A refund is not tried again, because no one knows whether Redis made it; but one of
   * what is held is, as its marker knows. If the reply may come late and the request is denied here, a late charge is
   * refunded; but under an idempotency key it stays for the next attempt.
   */
  #answer(task: Task, charged: Charged, mayReplyLate = false): void {
    if (task.kind !== 'decide') {
      task.resolve(charged === 'no' ? unsent : unanswered)
      return
    }
    const decision = unavailableDecision(task.request, charged)
    const mayHold = charged === 'unknown' && isHold(task.request)
    const hasRefund = chargedLimits(task.request, { atUs: 0, exceededMask: 0 }).length > 0
    if (!((mayReplyLate && hasRefund) || mayHold) || task.request.idempotency !== undefined) {
      task.resolve(decision)
      return
    }
    const giveBack = () =>
      new Promise<void>((resolve) => this.#repeatRefund(task.request, { atUs: 0, exceededMask: 0 }, resolve))
    if (decision.allowed) task.resolve(mayHold ? { ...decision, giveBack } : decision)
    else if (mayHold) task.resolve({ ...decision, lateRefund: giveBack() })
    else {
      const { promise: lateRefund, resolve } = Promise.withResolvers<void>()
      task.onLateRefund = resolve
      task.resolve({ ...decision, lateRefund })
    }
  }
}
