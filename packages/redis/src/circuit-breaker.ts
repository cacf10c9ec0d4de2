interface CircuitBreakerOptions {
  /** Sends a probe to the server; undefined if there is no connection. */
  readonly probe: () => Promise<unknown> | undefined
  /** A probe that is answered later than this has failed. */
  readonly deadlineMs: number
  readonly isOpen: boolean
}

/**
 * Calls in a row that time out before the circuit opens. On a busy machine one call is late now and then, and requests
 * behind an open circuit are not counted for 100 ms; a server that is down costs the requests of three calls their
 * deadline.
 */
export const timeoutsMax = 3
/** The circuit closes within this time after Redis is available again; ten probes a second cost nothing. */
const probeEveryMs = 100

/**
 * Whether a Redis is asked at all.
 *
 * - Closed: it is.
 * - Open: requests are answered without it, immediately. A probe is sent every 100 ms, but only after the previous one
 *   was answered or failed: a server that hangs finds one more command waiting, not hundreds.
 *
 * The circuit opens at the third call in a row that times out, and when the connection ends. It closes when a probe is
 * answered within the deadline.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions
  readonly #onceClosed = new Set<() => void>()
  #isOpen = false
  #timeouts = 0
  #opened = 0
  #timer: NodeJS.Timeout | undefined
  #isProbing = false
  #isStopped = false

  constructor(options: CircuitBreakerOptions) {
    this.#options = options
    if (!options.isOpen) return
    this.open()
    this.#opened = 0 // no request was denied yet
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** How often it opened. */
  get opened(): number {
    return this.#opened
  }

  /** A call was not answered within its deadline. */
  countTimeout(): void {
    this.#timeouts += 1
    if (this.#timeouts >= timeoutsMax) this.open()
  }

  /** A call was answered, however late: the server is not down. */
  countAnswer(): void {
    this.#timeouts = 0
  }

  open(): void {
    if (this.#isOpen) return
    this.#timeouts = 0
    this.#isOpen = true
    this.#opened += 1
    if (this.#isStopped) return
    this.#timer = setInterval(() => this.probe(), probeEveryMs)
    this.#timer.unref()
  }

  /** Runs it once: when the circuit is closed, or when it is certain that it never will be. */
  onceClosed(run: () => void): void {
    if (this.#isOpen && !this.#isStopped) this.#onceClosed.add(run)
    else run()
  }

  /** Probes now, if open and no probe is under way. */
  probe(): void {
    if (!this.#isOpen || this.#isProbing || this.#isStopped) return
    const answer = this.#options.probe()
    if (answer === undefined) return
    this.#isProbing = true
    // As for a call: our own event loop may be busy, and an answer that has arrived is read before setImmediate.
    let isLate = false
    const timer = setTimeout(() => setImmediate(() => (isLate = true)), this.#options.deadlineMs)
    timer.unref()
    const end = (isAnswered: boolean) => {
      clearTimeout(timer)
      this.#isProbing = false
      if (isAnswered && !isLate) this.#close()
    }
    answer.then(
      () => end(true),
      () => end(false),
    )
  }

  /** Opens the circuit for good, because the connection has ended. */
  stop(): void {
    this.#isStopped = true
    this.#isOpen = true
    clearInterval(this.#timer)
    this.#runWaiting()
  }

  #close(): void {
    if (this.#isStopped) return
    this.#isOpen = false
    clearInterval(this.#timer)
    this.#runWaiting()
  }

  #runWaiting(): void {
    const waiting = [...this.#onceClosed]
    this.#onceClosed.clear()
    for (const run of waiting) run()
  }
}
