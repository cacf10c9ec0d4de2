import { setTimeout as delay } from 'node:timers/promises'
import type { Settlement } from '@weir/core/limits/settlement.ts'
import type { Settlements } from '../ports.ts'

/**
 * More than the longest journal has corrections, and this process in addition; a correction is some 100 bytes.
 */
const pendingMax = 200_000
/** Calls to Redis that are under way together. */
const batchMax = 32
/**
 * How often a Redis that is down is tried again: well within the minute after which another process writes what is
 * still pending.
 */
const retryMs = 250
/** Half of that minute: from then on an operator is to know. */
const warnAfterMs = 30_000

/** Names the decision whose correction is written. */
export type WrittenCorrection = Pick<Settlement, 'subject' | 'root' | 'id'>

type WarningLog = { warn(fields: object, event: string): void }

/**
 * Retries the message "this correction is written" to Redis until Redis has it, for as long as the process lives: a
 * record that Redis takes for pending is written again by the next process that meets a repeat.
 */
export class CorrectionAckQueue {
  readonly #settlements: Pick<Settlements, 'confirmRecorded'>
  readonly #log: WarningLog
  readonly #pause: () => Promise<unknown>
  readonly #closing = new AbortController()
  /** By decision; the one that was tried longest ago is first. */
  readonly #pending = new Map<string, { correction: WrittenCorrection; onAcked: (() => unknown) | undefined }>()
  #isSending = false

  /**
   * @param log gets a warning once when Redis has not answered for long, and at the close about what it has not learned
   * @param pause a test's pause between two attempts
   */
  constructor(settlements: Pick<Settlements, 'confirmRecorded'>, log: WarningLog, pause?: () => Promise<unknown>) {
    const { signal } = this.#closing
    this.#settlements = settlements
    this.#log = log
    this.#pause = pause ?? (() => delay(retryMs, undefined, { ref: false, signal }).catch(() => undefined))
  }

  /** Calls `onAcked` for each that Redis knows of; not after `close`, and not for one beyond the bound. */
  enqueue(corrections: readonly WrittenCorrection[], onAcked?: () => unknown): void {
    if (this.#closing.signal.aborted) return
    for (const correction of corrections) {
      const name = `${correction.id} ${correction.subject}`
      const known = this.#pending.get(name)
      if (known !== undefined) known.onAcked ??= onAcked
      else if (this.#pending.size < pendingMax) this.#pending.set(name, { correction, onAcked })
    }
    void this.#sendAll()
  }

  /** Sends no more. Returns how many Redis does not know of: their records stay pending. */
  close(): number {
    this.#closing.abort()
    const left = this.#pending.size
    const event = 'Redis did not receive confirmations of written corrections: repeated requests may write them again'
    if (left > 0) this.#log.warn({ left }, event)
    return left
  }

  /** One loop for all: however many there are, a Redis that is down is asked for a few of them at a time. */
  async #sendAll(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    let warnAtMs = performance.now() + warnAfterMs
    while (this.#pending.size > 0 && !this.#closing.signal.aborted) {
      if (await this.#sendBatch()) continue
      if (performance.now() > warnAtMs) {
        warnAtMs = Number.POSITIVE_INFINITY
        const left = this.#pending.size
        this.#log.warn({ left }, 'Redis does not confirm written corrections, retrying')
      }
      await this.#pause()
    }
    this.#isSending = false
  }

  /** False when Redis did not take one of them. */
  async #sendBatch(): Promise<boolean> {
    const batch = this.#pending.entries().take(batchMax).toArray()
    const answers = await Promise.all(batch.map(([, { correction }]) => this.#settlements.confirmRecorded(correction)))
    for (const [at, [name, one]] of batch.entries()) {
      this.#pending.delete(name)
      if (answers[at] === true) one.onAcked?.()
      else this.#pending.set(name, one) // behind the others, so that none holds them up
    }
    return answers.every((isAcked) => isAcked)
  }
}
