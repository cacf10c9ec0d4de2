/*
 * The requests that wait for capacity in one count of one limit, first in, first out. Promises:
 *
 * - The queue is bounded: in length, and no request waits beyond its deadline. One that could not be served by then is
 *   not accepted at all.
 * - Grants are paced: they come `pacingMs` apart, from when capacity is expected. A granted request that finds none
 *   after all goes back to the front.
 * - The queue is cheap: it has one timer, however many wait, and does a bounded piece of work whenever that fires.
 *
 * An entry is waiting, then granted, then waiting again (no capacity after all) or released. Times are on the clock
 * that is never set, `performance.now()`.
 */

/**
 * Granted entries that are being decided, as many as one call of the script takes. More would only queue up in front of
 * Redis.
 */
const grantedMax = 32
/** Entries that expire in one run of the timer: about a millisecond of records. */
const expiredAtOnce = 200

/** When a refusal expects capacity. Both are 0 for a request that was not decided, because others wait before it. */
export interface CapacityForecast {
  /** For the limit that is waited for: the others in its queue may go by it too. */
  readonly capacityMs: number
  /** For all limits of this request; at least `capacityMs`. */
  readonly retryMs: number
}

/** What a request brings to a queue. */
export interface EnqueueRequest extends CapacityForecast {
  readonly subject: string
  /** From this grant to the next: the time in which the limit admits as much as this request costs. */
  readonly pacingMs: number
  readonly deadlineMs: number
  /** The longest that the limit's queue may be. */
  readonly queueMax: number
}

/** One waiting request. After a grant its owner says how that ended: `requeue` or `release`. */
export interface QueueTicket {
  /** True for a grant. False if there was no capacity in time, or the client has left. */
  wait(): Promise<boolean>
  /** The grant found no capacity. False if none can be expected in time: the ticket is then released. */
  requeue(forecast: CapacityForecast): boolean
  /** Ends the ticket in every state. `isUsed`: the grant took capacity. */
  release(isUsed: boolean): void
  /** The client has left. A request that is being decided just now is decided to the end. */
  cancel(): void
}

interface Entry extends EnqueueRequest {
  readonly number: number
  state: 'waiting' | 'granted' | 'released'
  report: (isGranted: boolean) => void
}

/** The queue of one count; see the head of this file. */
export class DelayQueue {
  readonly #released: (subject: string) => void
  readonly #ended: () => void
  /** In the order of their numbers, those that went back to the front included. */
  readonly #waiting: Entry[] = []
  /** The sum over all that wait. */
  #pacingMs = 0
  #accepted = 0
  #granted = 0
  /** When the next grant comes. */
  #nextMs: number
  /** No waiting entry expires before this. */
  #soonestEndMs = Number.POSITIVE_INFINITY
  #closesMs = Number.POSITIVE_INFINITY
  #armedMs = Number.POSITIVE_INFINITY
  /** It keeps the process alive until no request waits. */
  #timer: NodeJS.Timeout | undefined

  /**
   * @param capacityMs how long it takes until there is capacity
   * @param released called once for each entry that was accepted
   * @param ended called when the queue is empty; it must not be used any more
   */
  constructor(capacityMs: number, released: (subject: string) => void, ended: () => void) {
    this.#released = released
    this.#ended = ended
    this.#nextMs = performance.now() + capacityMs
  }

  /** Entries that wait or are being decided. */
  get size(): number {
    return this.#waiting.length + this.#granted
  }

  /** How long a request that came now would wait. */
  get waitMs(): number {
    return Math.max(0, this.#nextMs + this.#pacingMs - performance.now())
  }

  /** Undefined where the queue is full, or capacity cannot be expected before the request's deadline. */
  enqueue(request: EnqueueRequest): QueueTicket | undefined {
    const nowMs = performance.now()
    const grantMs = Math.max(this.#nextMs, nowMs) + this.#pacingMs
    if (this.size >= request.queueMax || Math.max(grantMs, nowMs + request.retryMs) > this.#endOf(request)) {
      return undefined
    }
    this.#accepted += 1
    const entry: Entry = { ...request, number: this.#accepted, state: 'waiting', report: () => {} }
    this.#add(entry)
    this.#arm()
    return this.#ticketOf(entry)
  }

  /** There is capacity now, whatever the forecasts said: the first entry is granted. */
  expect(): void {
    this.#nextMs = Math.min(this.#nextMs, performance.now())
    this.#arm()
  }

  /** All entries expire at `closesMs` at the latest. */
  close(closesMs: number): void {
    this.#closesMs = closesMs
    this.#soonestEndMs = Math.min(this.#soonestEndMs, closesMs)
    this.#arm()
  }

  #ticketOf(entry: Entry): QueueTicket {
    return {
      wait: () =>
        new Promise((resolve) => {
          if (entry.state === 'released') resolve(false)
          else entry.report = resolve
        }),
      requeue: (forecast) => this.#requeue(entry, forecast),
      release: (isUsed) => this.#release(entry, isUsed),
      cancel: () => {
        if (entry.state === 'waiting') this.#release(entry, false)
      },
    }
  }

  #add(entry: Entry): void {
    entry.state = 'waiting'
    const behind = this.#waiting.findLastIndex(({ number }) => number < entry.number)
    this.#waiting.splice(behind + 1, 0, entry)
    this.#pacingMs += entry.pacingMs
    this.#soonestEndMs = Math.min(this.#soonestEndMs, this.#endOf(entry))
  }

  #remove(entry: Entry): void {
    this.#waiting.splice(this.#waiting.indexOf(entry), 1)
    // Fractions of milliseconds do not add up to exactly nothing.
    this.#pacingMs = this.#waiting.length === 0 ? 0 : this.#pacingMs - entry.pacingMs
  }

  #requeue(entry: Entry, { capacityMs, retryMs }: CapacityForecast): boolean {
    if (entry.state !== 'granted') return false
    this.#granted -= 1
    const nowMs = performance.now()
    const nextMs = Math.max(this.#nextMs - entry.pacingMs, nowMs + capacityMs)
    const isHopeless = Math.max(nextMs, nowMs + retryMs) > this.#endOf(entry)
    if (isHopeless) {
      // Its forecast may hold for its cost and its limits alone: the next grant comes as if this one had been used.
      this.#end(entry)
    } else {
      this.#nextMs = nextMs
      this.#add(entry)
    }
    this.#arm()
    return !isHopeless
  }

  #release(entry: Entry, isUsed: boolean): void {
    if (entry.state === 'released') return
    if (entry.state === 'waiting') this.#remove(entry)
    else {
      this.#granted -= 1
      if (!isUsed) this.#nextMs -= entry.pacingMs
    }
    this.#end(entry)
    this.#arm()
  }

  #end(entry: Entry): void {
    entry.state = 'released'
    this.#released(entry.subject)
    entry.report(false)
  }

  /** A request that could have no grant by then is not kept. */
  #endOf({ deadlineMs }: EnqueueRequest): number {
    return Math.min(deadlineMs, this.#closesMs)
  }

  /** Sets the one timer to what comes first, or ends the queue. */
  #arm(): void {
    const hasWaiting = this.#waiting.length > 0
    const grantMs = hasWaiting && this.#granted < grantedMax ? this.#nextMs : Number.POSITIVE_INFINITY
    const atMs = Math.min(grantMs, hasWaiting ? this.#soonestEndMs : Number.POSITIVE_INFINITY)
    if (atMs !== this.#armedMs) {
      clearTimeout(this.#timer)
      this.#armedMs = atMs
      const isDue = atMs < Number.POSITIVE_INFINITY
      if (isDue) this.#timer = setTimeout(() => this.#run(), Math.max(0, Math.ceil(atMs - performance.now())))
    }
    if (this.size === 0) this.#ended()
  }

  #run(): void {
    this.#armedMs = Number.POSITIVE_INFINITY
    const nowMs = performance.now()
    let first = this.#waiting[0]
    while (first !== undefined && this.#granted < grantedMax && this.#nextMs <= nowMs && this.#endOf(first) >= nowMs) {
      this.#grant(first)
      first = this.#waiting[0]
    }
    if (this.#soonestEndMs <= nowMs) this.#expire(nowMs)
    this.#arm()
  }

  #grant(entry: Entry): void {
    this.#remove(entry)
    entry.state = 'granted'
    this.#granted += 1
    this.#nextMs += entry.pacingMs
    entry.report(true)
  }

  #expire(nowMs: number): void {
    const expired: Entry[] = []
    this.#soonestEndMs = Number.POSITIVE_INFINITY
    for (const entry of this.#waiting) {
      const endMs = this.#endOf(entry)
      if (endMs <= nowMs && expired.length < expiredAtOnce) expired.push(entry)
      else this.#soonestEndMs = Math.min(this.#soonestEndMs, endMs)
    }
    for (const entry of expired) {
      this.#remove(entry)
      this.#end(entry)
    }
  }
}
