import { performance } from 'node:perf_hooks'
import type { CheckRequest } from '../check-request.ts'
import { type CheckResult, isFields, limitStatesIn } from '../check-result.ts'
import type { Connection, Reply } from '../connection.ts'
import { readTemplate } from './header-template.ts'
import { LeaseBook, type LeaseQuestion, type LeaseReply, type Round } from './lease-book.ts'
import { laterRefusal, leasedResult } from './leased-result.ts'

/** Leases of a client: whether and how many distinct checks are decided with units that were taken ahead. */
export type LeaseOptions = boolean | { readonly questionsMax?: number | undefined }

/** Counts of a client's leases, for the metrics of an application. */
export type LeaseCounters = LeaseBook['counters']

/** Of checks that differ, two kilobytes each. */
const questionsMaxDefault = 10_000
/** A server that did not answer, or gave nothing, is asked again after this time. */
const retryMs = 1_000
/** A policy that gives nothing, or a server that knows no leases, is asked again after this time. */
const barredMs = 60_000
/** A machine that slept moves its wall clock on, and not the other: by less, and it was only adjusted. */
const sleptMs = 100
/** Units in a later answer are gone anyway. */
const roundTimeoutMs = 30_000
/** Longer questions than Weir reads, or than are worth remembering, are asked singly. */
const nameLengthMax = 4_096
const leasesPath = '/v1/leases'

/**
 * Decides checks with units that were taken ahead, and keeps up with the server in rounds. See `LeaseBook` for the
 * algorithm; this has its clock, its timer and its connection.
 */
export class Leases {
  readonly #book: LeaseBook
  readonly #connection: Connection
  #timer: NodeJS.Timeout | undefined
  /** When it fires. */
  #timerMs = 0
  /** What the wall clock shows beyond the other clock: more, after a machine slept. */
  #aheadMs = Date.now() - performance.now()
  #jumpedMs = 0
  #idle: PromiseWithResolvers<void> | undefined
  #underWay = 0
  /** Ends the rounds on their way when a close has no more time. */
  readonly #ending = new AbortController()

  constructor(connection: Connection, options: Exclude<LeaseOptions, boolean> = {}) {
    this.#connection = connection
    this.#book = new LeaseBook(options.questionsMax ?? questionsMaxDefault)
  }

  get counters(): LeaseCounters {
    return { ...this.#book.counters }
  }

  /** Decides now; undefined where the server is to be asked. */
  decide(request: CheckRequest): CheckResult | undefined {
    const name = nameOf(request)
    if (name === undefined) return undefined
    const wallMs = Date.now()
    const nowMs = this.#now(wallMs)
    const found = this.#book.decide(name, nowMs)
    if (this.#book.hasWork) this.#schedule()
    if (found === undefined) return undefined
    return 'left' in found ? leasedResult(found, nowMs, wallMs) : laterRefusal(found.result, nowMs - found.sinceMs)
  }

  /** Notes a check that the server is asked; returns what notes its result. */
  askedSingly(request: CheckRequest): ((result: CheckResult) => void) | undefined {
    const name = nameOf(request)
    if (name === undefined) return undefined
    this.#book.askedSingly({ name, body: bodyOf(request) }, this.#now())
    if (this.#book.hasWork) this.#schedule()
    return (result) => this.#book.answeredSingly(name, result, this.#now())
  }

  /** Gives back what is not used, and reports refusals, for as long as `timeoutMs` at most. */
  async close(timeoutMs: number): Promise<void> {
    this.#book.close()
    this.#idle = Promise.withResolvers()
    const timer = setTimeout(this.#idle.resolve, timeoutMs)
    this.#play()
    await this.#idle.promise
    clearTimeout(timer)
    this.#ending.abort()
    clearTimeout(this.#timer)
  }

  #now(wallMs = Date.now()): number {
    const nowMs = performance.now()
    const jumpedMs = wallMs - nowMs - this.#aheadMs
    if (jumpedMs > sleptMs) {
      this.#aheadMs += jumpedMs
      this.#jumpedMs += jumpedMs
    } else if (jumpedMs < 0) this.#aheadMs += jumpedMs
    return nowMs + this.#jumpedMs
  }

  /** One timer, for whatever is due first. */
  #schedule(): void {
    if (this.#ending.signal.aborted) return
    const nowMs = this.#now()
    const dueMs = Math.max(nowMs, Math.min(nowMs + retryMs, this.#book.dueMs()))
    if (this.#timer !== undefined && this.#timerMs <= dueMs) return
    clearTimeout(this.#timer)
    this.#timerMs = dueMs
    this.#timer = setTimeout(this.#play, dueMs - nowMs).unref()
  }

  readonly #play = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (
      let round = this.#book.takeRound(this.#now());
      round !== undefined;
      round = this.#book.takeRound(this.#now())
    ) {
      void this.#send(round)
    }
    if (this.#book.dueMs() < Number.POSITIVE_INFINITY) this.#schedule()
    if (this.#underWay === 0 && !this.#book.hasWork) this.#idle?.resolve()
  }

  async #send(round: Round): Promise<void> {
    const sentMs = this.#now()
    const lease = round.lease.map(({ question, want }) => ({ ...question.body, want }))
    const refused = round.refused.map(({ question, deniedBy, count }) => ({
      ...question.body,
      denied_by: deniedBy,
      count,
    }))
    const settle = round.settle.map(({ id, subject, cost }) => ({ id, subject, cost }))
    const body = JSON.stringify({ settle, refused, lease })
    this.#underWay += 1
    try {
      const signal = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(roundTimeoutMs)])
      const reply = await this.#connection.send({ path: leasesPath, body, isHeld: false }, signal)
      this.#answered(round, reply, sentMs)
    } catch {
      this.#book.lost(round, this.#now())
    }
    this.#underWay -= 1
    this.#play()
  }

  #answered(round: Round, { status, value }: Reply, sentMs: number): void {
    const nowMs = this.#now()
    const lists = isFields(value) ? [value.leases, value.settled] : []
    const [leases, settled] = lists
    if (status !== 200 || !Array.isArray(leases) || !Array.isArray(settled)) {
      // A server that knows no leases, or does not let this client have any, has done nothing.
      const wasUndone = status >= 300 && status < 500
      this.#book.lost(round, nowMs, { wasUndone, plainMs: wasUndone && status !== 429 ? barredMs : retryMs })
      return
    }
    this.#book.answered(round, leases.map(replyOf), sentMs, nowMs)
    for (const [at, one] of round.settle.entries()) {
      const status = problemIn(settled[at])
      if (status !== undefined) this.#book.unsettled(one, nowMs, status < 500)
    }
  }
}

/** Tells checks apart whose answer is the same for a while; undefined for any other. */
function nameOf(request: CheckRequest): string | undefined {
  const { units, idempotencyKey, peek, settle, wait } = request
  if (units ?? idempotencyKey ?? settle ?? wait ?? (peek === true || undefined)) return undefined
  const { subject = '', key = '', ip = '', route = '', method = '', cost, attributes } = request
  // With their lengths, no two lists of texts are one.
  const lengths = `${subject.length} ${key.length} ${ip.length} ${route.length} ${method.length} ${cost ?? ''}`
  const more = attributes === undefined ? '' : JSON.stringify(attributes)
  const name = `${lengths}\n${subject}${key}${ip}${route}${method}${more}`
  return name.length > nameLengthMax ? undefined : name
}

const bodyOf = ({ subject, key, ip, route, method, cost, attributes }: CheckRequest): LeaseQuestion['body'] => ({
  subject,
  key,
  ip,
  route,
  method,
  cost,
  attributes,
})

/** The status of an item's problem; undefined for none. */
const problemIn = (answer: unknown): number | undefined =>
  isFields(answer) && isFields(answer.problem) ? Number(answer.problem.status) : undefined

function replyOf(answer: unknown): LeaseReply {
  if (!isFields(answer)) return { plainMs: retryMs }
  const { id, subject, count, cost, ends_ms: endsMs, life_ms: lifeMs, limits, headers, why, retry_ms: waitMs } = answer
  if (typeof id !== 'string' || typeof subject !== 'string' || typeof count !== 'number' || typeof cost !== 'number') {
    const isBarred = why !== 'too-little' && why !== 'refused' && why !== 'unavailable'
    if (isBarred) return { plainMs: barredMs, isBarred }
    return { plainMs: typeof waitMs === 'number' ? waitMs : retryMs }
  }
  const texts = isFields(headers) ? Object.entries(headers) : []
  return {
    id,
    subject,
    count,
    cost,
    endsMs: typeof endsMs === 'number' ? endsMs : 0,
    lifeMs: typeof lifeMs === 'number' ? lifeMs : retryMs,
    limits: limitStatesIn(limits),
    headers: texts.map(([name, text]) => readTemplate(name, String(text))),
  }
}
