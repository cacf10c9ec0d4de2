import { setTimeout as delay } from 'node:timers/promises'
import { retryDelayMs } from './retry-delay.ts'

/** One of this many failed attempts in a row is logged: about twice a minute at the longest pause. */
const failuresPerLogLine = 6

/** What is followed over one connection, and what is said when that breaks. */
interface FollowLoopOptions {
  /** Ends only by a rejection, or once the loop is closed. */
  readonly follow: () => Promise<void>
  /** `isLogged`: one line in the log for several failures in a row. */
  readonly onFailure: (error: unknown, failures: number, isLogged: boolean) => void
}

/** Follows something in Kafka until it is closed, over times without Kafka: with longer and longer pauses. */
export class FollowLoop {
  readonly #options: FollowLoopOptions
  readonly #stopping = new AbortController()
  #failures = 0

  constructor(options: FollowLoopOptions) {
    this.#options = options
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  async run(): Promise<void> {
    while (!this.isStopping) {
      try {
        await this.#options.follow()
      } catch (error) {
        if (this.isStopping) return
        this.#failures += 1
        this.#options.onFailure(error, this.#failures, this.#failures % failuresPerLogLine === 1)
        await delay(retryDelayMs(this.#failures), undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      }
    }
  }

  /** Something was read: the next failure is the first. */
  succeeded(): void {
    this.#failures = 0
  }

  close(): void {
    this.#stopping.abort()
  }
}
