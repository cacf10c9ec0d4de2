import { setTimeout as delay } from 'node:timers/promises'
import type { WrittenCorrection } from '@weir/journal/find-corrections.ts'
import type { Settlements } from '@weir/redis/settlements.ts'

/** Longer than the longest journal's corrections, and those of this process beside them; a correction is some 100 bytes. */
const leftMax = 200_000
/** Asked of Redis at once. */
const togetherMax = 32
/** A Redis that was gone is asked again so often: well within the minute after which another process writes what is still owed. */
const againMs = 250
/** Half of that minute: from then on somebody is to know. */
const warnAfterMs = 30_000

/**
 * Tells Redis of corrections whose records are safe, each until it knows, for as long as the process lives: what Redis takes for owed
 * is written again by whichever process meets a repeat.
 */
export interface Telling {
  /** Takes these on. `onTold` is called for each that Redis knows of; not after `close`, and not for one that there was no room for. */
  tell(corrections: readonly WrittenCorrection[], onTold?: (told: WrittenCorrection) => void): void
  /** From now on they are told, those taken on before first. */
  tellTo(settlements: Pick<Settlements, 'recorded'>): void
  /** Tells no more. Says how many Redis does not know of: they stay owed. */
  close(): number
}

export interface TellingOptions {
  /** Says when Redis does not hear of one for long, once until it knows of all, and at the close what it does not know of. */
  readonly log: { warn(fields: object, event: string): void }
  /** A test's pause between two attempts. */
  readonly pause?: () => Promise<unknown>
  /** Milliseconds on a clock that is never set. */
  readonly monotonicMs?: () => number
}

/** For those without settlements: there is nobody to tell. */
export const noTelling: Telling = { tell: () => undefined, tellTo: () => undefined, close: () => 0 }

export const createTelling = (options: TellingOptions): Telling => new RedisTelling(options)

interface Left {
  readonly correction: WrittenCorrection
  onTold: ((told: WrittenCorrection) => void) | undefined
}

class RedisTelling implements Telling {
  readonly #log: TellingOptions['log']
  readonly #pause: () => Promise<unknown>
  readonly #monotonicMs: () => number
  readonly #closing = new AbortController()
  /** By decision, those that were asked for longest first. */
  readonly #left = new Map<string, Left>()
  #settlements: Pick<Settlements, 'recorded'> | undefined
  #isTelling = false

  constructor(options: TellingOptions) {
    const { signal } = this.#closing
    this.#log = options.log
    this.#pause = options.pause ?? (() => delay(againMs, undefined, { ref: false, signal }).catch(() => undefined))
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now())
  }

  tell(corrections: readonly WrittenCorrection[], onTold?: (told: WrittenCorrection) => void): void {
    if (this.#closing.signal.aborted) return
    for (const correction of corrections) {
      const name = `${correction.id} ${correction.subject}`
      const known = this.#left.get(name)
      if (known !== undefined) known.onTold ??= onTold
      else if (this.#left.size < leftMax) this.#left.set(name, { correction, onTold })
    }
    void this.#tellAll()
  }

  tellTo(settlements: Pick<Settlements, 'recorded'>): void {
    this.#settlements = settlements
    void this.#tellAll()
  }

  close(): number {
    this.#closing.abort()
    const left = this.#left.size
    const event = 'Redis was not told of corrections that are written: repeats may write them again'
    if (left > 0) this.#log.warn({ left }, event)
    return left
  }

  /** One loop for all: however many there are, a Redis that is gone is asked for a few of them at a time. */
  async #tellAll(): Promise<void> {
    const settlements = this.#settlements
    if (this.#isTelling || settlements === undefined) return
    this.#isTelling = true
    const sinceMs = this.#monotonicMs()
    let isLate = false
    while (this.#left.size > 0 && !this.#closing.signal.aborted) {
      if (await this.#tellSome(settlements)) continue
      if (!isLate && this.#monotonicMs() - sinceMs > warnAfterMs) {
        isLate = true
        this.#log.warn({ left: this.#left.size }, 'Redis does not hear of corrections that are written: it is told on')
      }
      await this.#pause()
    }
    this.#isTelling = false
  }

  /** False when Redis did not take one of them. */
  async #tellSome(settlements: Pick<Settlements, 'recorded'>): Promise<boolean> {
    const some = this.#left.entries().take(togetherMax).toArray()
    const answers = await Promise.all(some.map(([, { correction }]) => settlements.recorded(correction)))
    for (const [at, [name, one]] of some.entries()) {
      this.#left.delete(name)
      if (answers[at] === true) one.onTold?.(one.correction)
      else this.#left.set(name, one) // behind the others, so that none holds them up
    }
    return answers.every((isTold) => isTold)
  }
}
