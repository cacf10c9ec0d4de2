export interface CircuitBreakerOptions {
  /** Asks the server for a sign of life; undefined when there is nobody to ask, because no connection stands. */
  readonly probe: () => Promise<unknown> | undefined
  /** An answer later than this is no sign of life. */
  readonly deadlineMs: number
  readonly isOpen: boolean
}

/** A sign of life is found within this time after Redis is back; asking ten times a second costs nothing. */
const probeEveryMs = 100

/**
 * Whether a Redis is asked at all.
 *
 * Closed: it is.
 * Open: requests are answered without it, at once. A probe goes out every 100 ms, but only when the last one was answered or
 * failed: a server that hangs finds one more command waiting, not hundreds.
 *
 * It opens at the first call that is overdue, and when the connection ends. It closes when a probe is answered within the
 * deadline.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions
  readonly #onceClosed = new Set<() => void>()
  #isOpen = false
  #opened = 0
  #timer: NodeJS.Timeout | undefined
  #isProbing = false
  #isStopped = false

  constructor(options: CircuitBreakerOptions) {
    this.#options = options
    if (!options.isOpen) return
    this.open()
    this.#opened = 0 // nobody was turned away yet
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** How often it opened. */
  get opened(): number {
    return this.#opened
  }

  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#opened += 1
    if (this.#isStopped) return
    this.#timer = setInterval(() => this.probe(), probeEveryMs)
    this.#timer.unref()
  }

  /** Runs it once: when it is closed, or when it is certain that it never will be. */
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
    // As for a call: a busy event loop of our own is no sign of death, and an answer that is already here is read before this.
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

  /** Opens it for good: the connection will not come back. */
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
