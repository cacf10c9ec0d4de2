import type { Charged, Decision } from '@weir/core/limits/decision.ts'
import type { Charge, LimitRequest } from '@weir/core/limits/limit-store.ts'
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
import type { StoreCounts } from './limit-store-counters.ts'
import { readScriptError } from './script-error.ts'
import type { CallTarget } from './script-server.ts'

interface TaskTimes {
  /** On the monotonic clock; from here the deadline counts. */
  readonly arrivedMs: number
  /** A call with others failed for what one of them asks, or for what others ask: it goes in a call of its own, once. */
  isIsolated: boolean
  readonly reject: (error: Error) => void
}

export interface DecideTask extends TaskTimes {
  readonly kind: 'decide'
  readonly request: LimitRequest
  readonly resolve: (decision: Decision) => void
  /** Set when the request was denied at its deadline: settles `Decision.lateRefund`. */
  onLateRefund?: () => void
}

export interface RefundTask extends TaskTimes {
  readonly kind: 'refund'
  readonly request: LimitRequest
  readonly charge: Charge
  readonly resolve: (isRefunded: boolean) => void
}

export type Task = DecideTask | RefundTask

/** What all lanes of a store share. */
export interface BatcherOptions {
  readonly deadlineMs: number
  readonly counts: StoreCounts
  readonly parts: () => CallParts
}

/** One call under way. `isTimedOut`: its requests were answered without it, because it took too long. */
interface Call {
  readonly tasks: readonly Task[]
  isTimedOut: boolean
}

/** Requests that may wait for a call: 32 full calls, more than can be decided within the deadline anyway. */
const waitingMax = 1_024
/** One call is given up at a time, so no more than its requests can be owed; those of a second go without. */
const owedMax = 2 * requestsPerCallMax

/**
 * Gathers requests into calls of decide.lua. One call is under way at a time; what arrives meanwhile goes with the next, so
 * calls grow with the load.
 *
 * Idle: the first arrival schedules a call for the end of this turn of the event loop.
 * Under way: arrivals wait. No request waits longer than the deadline, the call's oldest decides.
 * Gone: the call's requests and all that wait were answered as unavailable, and arrivals are at once, until the target is back.
 *
 * Nothing is ever sent twice that may have been run. What a call that was given up charged all the same is given back, once,
 * if its client was turned away: with the first call after the target is back.
 */
export class DecisionBatcher {
  readonly #target: CallTarget
  readonly #options: BatcherOptions
  readonly #counts: StoreCounts
  readonly #onIdle: () => void
  #waiting: Task[] = []
  #owed: RefundTask[] = []
  #call: Call | undefined
  #isScheduled = false
  #isClosed = false

  constructor(target: CallTarget, options: BatcherOptions, onIdle: () => void = () => undefined) {
    this.#target = target
    this.#options = options
    this.#counts = options.counts
    this.#onIdle = onIdle
  }

  add(task: Task): void {
    if (this.#isClosed || this.#target.isDown || this.#waiting.length >= waitingMax) {
      this.#answer(task, 'no')
      this.#goOn()
      return
    }
    this.#waiting.push(task)
    this.#schedule()
  }

  /** Answers what waits as unavailable, and whatever comes later. */
  close(): void {
    this.#isClosed = true
    this.#owed = []
    this.#answerWaiting()
  }

  get #isIdle(): boolean {
    return this.#call === undefined && this.#waiting.length === 0 && this.#owed.length === 0
  }

  /** The call starts when everything that this turn of the event loop read has arrived. */
  #schedule(): void {
    if (this.#isScheduled || this.#call !== undefined || this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#start()
    })
  }

  /** The next call's requests: those that wait longest, or the first alone. */
  #take(): Task[] {
    const max = Math.min(this.#waiting.length, requestsPerCallMax)
    let count = 0
    while (count < max && this.#waiting[count]?.isIsolated === false) count += 1
    return this.#waiting.splice(0, Math.max(1, count))
  }

  #start(): void {
    if (this.#call !== undefined) return
    const tasks = this.#take()
    const [oldest] = tasks
    const leftMs = oldest === undefined ? 0 : oldest.arrivedMs + this.#options.deadlineMs - performance.now()
    const encoded = leftMs > 0 && !this.#target.isDown ? this.#encode(tasks) : this.#answerAll(tasks, 'no')
    if (encoded === undefined) {
      this.#goOn()
      return
    }
    const call: Call = { tasks, isTimedOut: false }
    this.#call = call
    this.#counts.calls += 1
    // A turn that took longer than the deadline must not beat a reply that is already here: it is read before setImmediate.
    const timer = setTimeout(() => setImmediate(() => this.#giveUp(call)), Math.ceil(leftMs))
    this.#target
      .send(encoded, () => call.isTimedOut)
      .then(
        (reply) => this.#finish(call, timer, () => this.#settle(call, reply)),
        (error: unknown) => this.#finish(call, timer, () => this.#fail(call, error)),
      )
  }

  /** Undefined when a request made that impossible. */
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

  #settle(call: Call, reply: unknown): void {
    let read: ScriptReply
    try {
      read = decodeReply(reply, call.tasks)
    } catch (error) {
      this.#counts.countError('REPLY', error)
      if (!call.isTimedOut) this.#answerAll(call.tasks, 'unknown')
      return
    }
    this.#counts.rebased += read.rebased
    if (call.isTimedOut) this.#settleLate(call, read.outcomes)
    else this.#settleAll(call, read.outcomes)
  }

  #settleAll(call: Call, outcomes: readonly Outcome[]): void {
    for (const [at, task] of call.tasks.entries()) {
      const outcome = outcomes[at]
      if (outcome === undefined) task.reject(new Error('decide.lua left a request out'))
      else if ('malformed' in outcome) this.#settleMalformed(task, outcome.malformed)
      else if ('refunded' in outcome) settleRefund(task, outcome.refunded)
      else if (task.kind === 'decide') {
        this.#counts.decisions += 1
        task.resolve(outcome)
      } else task.reject(new Error('decide.lua decided what was to be given back'))
    }
  }

  /** Two requests of the call may hold a key to different definitions, as a change of policy brings: the second goes again. */
  #settleMalformed(task: Task, malformed: string): void {
    if (malformed !== 'definition' || task.isIsolated) {
      task.reject(new Error(`decide.lua found the request's ${malformed} wrong`))
      return
    }
    task.isIsolated = true
    this.#waiting.unshift(task)
  }

  /** The clients were answered long ago; whoever was turned away and yet charged is owed the charge. */
  #settleLate(call: Call, outcomes: readonly Outcome[]): void {
    this.#counts.lateReplies += 1
    this.#target.onLateReply()
    for (const [at, task] of call.tasks.entries()) {
      const outcome = outcomes[at]
      if (task.kind === 'refund' || outcome === undefined || !('charged' in outcome)) continue
      const { request, onLateRefund } = task
      if (outcome.charged === 'yes' && onLateRefund !== undefined) this.#owe(request, outcome, onLateRefund)
    }
    if (this.#owed.length > 0) this.#target.onceAvailable(() => this.#payBack())
  }

  #owe(request: LimitRequest, charge: Charge, onLateRefund: () => void): void {
    if (this.#isClosed || this.#owed.length >= owedMax) {
      this.#counts.lateRefundsLost += 1
      return
    }
    const resolve = (isRefunded: boolean) => {
      if (isRefunded) {
        this.#counts.lateRefunds += 1
        onLateRefund()
      } else this.#counts.lateRefundsLost += 1
    }
    const reject = () => resolve(false)
    this.#owed.push({ kind: 'refund', request, charge, arrivedMs: 0, isIsolated: false, resolve, reject })
  }

  #payBack(): void {
    const arrivedMs = performance.now()
    this.#waiting.unshift(...this.#owed.map((task) => ({ ...task, arrivedMs })))
    this.#owed = []
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

  /** Nothing was run, for what the call asks: each request is asked alone, once, so that the wrong one fails alone. */
  #retryIndividually(tasks: readonly Task[], error: unknown): void {
    const [first] = tasks
    if (tasks.length === 1 && first !== undefined) {
      first.reject(error instanceof Error ? error : new Error('a request cannot be encoded', { cause: error }))
      return
    }
    for (const task of tasks) task.isIsolated = true
    this.#waiting.unshift(...tasks)
  }

  #giveUp(call: Call): void {
    if (this.#call !== call || call.isTimedOut) return
    call.isTimedOut = true
    this.#call = undefined
    this.#target.onTimeout()
    for (const task of call.tasks) this.#answer(task, 'unknown', true)
    this.#answerWaiting()
    this.#goOn()
  }

  #answerWaiting(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#answerAll(waiting, 'no')
  }

  #answerAll(tasks: readonly Task[], charged: Charged): undefined {
    for (const task of tasks) this.#answer(task, charged)
  }

  /**
   * Without Redis. A refund is not tried again: whether it was made would have to be known. A request whose reply may come late gets what
   * that charged refunded if it is denied here; but under an idempotency key the charge stands for the next attempt, which it admits.
   */
  #answer(task: Task, charged: Charged, mayReplyLate = false): void {
    if (task.kind === 'refund') {
      task.resolve(false)
      return
    }
    this.#counts.unavailable += 1
    const decision = unavailableDecision(task.request, charged)
    if (!mayReplyLate || decision.allowed || task.request.idempotency !== undefined) {
      task.resolve(decision)
      return
    }
    const { promise: lateRefund, resolve } = Promise.withResolvers<void>()
    task.onLateRefund = resolve
    task.resolve({ ...decision, lateRefund })
  }
}

function settleRefund(task: Task, isRefunded: boolean): void {
  if (task.kind === 'refund') task.resolve(isRefunded)
  else task.reject(new Error('decide.lua refunded what was to be decided'))
}
