import type { DecisionLog } from '../ports.ts'
import { type Correction, encodeCorrectionOpen } from './correction-record.ts'

/** More than one stalled write holds, and than one upstream fails in minutes; half a kilobyte each. */
const waitingMaxDefault = 10_000
/** How often a journal that accepted nothing is tried again. */
const retryMs = 1_000
/** Given to it at a time: some milliseconds, so that no request waits for them. */
const batchMax = 500

interface Pending {
  readonly subject: string
  readonly line: string
}

/**
 * Records corrections of what decisions were charged. Each is given to the journal until it is written, and then never
 * again; no answer waits for it. What still waits dies with the process.
 */
export class Corrections {
  /** Since the process started; `lost` are those beyond the bound. */
  readonly counters = { recorded: 0, lost: 0 }
  readonly #log: DecisionLog
  readonly #waitingMax: number
  readonly #waiting = new Set<Pending>()
  #timer: NodeJS.Timeout | undefined

  constructor(log: DecisionLog, waitingMax: number = waitingMaxDefault) {
    this.#log = log
    this.#waitingMax = waitingMax
  }

  record(correction: Correction): void {
    const one = { subject: correction.subject, line: encodeCorrectionOpen(correction) }
    if (!this.#append(one)) this.#hold(one)
  }

  /** Gives the journal what waits, for the last time. Returns how many it did not accept. */
  close(): number {
    this.#appendWaiting(this.#waitingMax)
    clearInterval(this.#timer)
    return this.#waiting.size
  }

  #hold(one: Pending): void {
    if (this.#waiting.size >= this.#waitingMax) {
      this.counters.lost += 1
      return
    }
    this.#waiting.add(one)
    this.#timer ??= setInterval(() => this.#appendWaiting(batchMax), retryMs).unref()
  }

  #append(one: Pending): boolean {
    if (!this.#log.append(one.subject, one.line, true)) return false
    // Not given again while a stalled disk may still write it.
    void this.#log.finallyWritten().then((isWritten) => {
      if (isWritten) this.counters.recorded += 1
      else this.#hold(one)
    })
    return true
  }

  #appendWaiting(most: number): void {
    let count = 0
    for (const one of this.#waiting) {
      if (count === most || !this.#append(one)) return
      this.#waiting.delete(one)
      count += 1
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
