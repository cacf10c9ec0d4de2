import { setTimeout as delay } from 'node:timers/promises'
import { type RestorePass, restoreAfterMs } from '@weir/redis/data-loss-detector.ts'

/** A pass that failed, as where ClickHouse does not answer, is made again after this long. */
const retryMs = 1_000

/** Restores the quotas of subjects that were moved to another tree, where their counts begin from scratch. */
export class MovedQuotas {
  /** Moved by the changes of one round, which is half a minute; a policy has a million subjects at most. */
  readonly #moved = new Set<string>()
  readonly #restore: (pass: RestorePass, moved: ReadonlySet<string>) => Promise<void>
  readonly #onFault: (error: unknown) => void
  #round = new AbortController()
  #ended: Promise<void> = Promise.resolve()

  /** `restore` makes one pass; it rejects if it cannot now. */
  constructor(
    restore: (pass: RestorePass, moved: ReadonlySet<string>) => Promise<void>,
    onFault: (error: unknown) => void,
  ) {
    this.#restore = restore
    this.#onFault = onFault
  }

  /** Another move begins the passes again, for all that were moved. */
  add(subjects: readonly string[]): void {
    for (const subject of subjects) this.#moved.add(subject)
    this.#round.abort()
    this.#round = new AbortController()
    const { signal } = this.#round
    this.#ended = this.#ended.then(() => this.#makePasses(signal))
  }

  async stop(): Promise<void> {
    this.#round.abort()
    await this.#ended
  }

  async #makePasses(signal: AbortSignal): Promise<void> {
    const startMs = performance.now()
    for (const [at, afterMs] of restoreAfterMs.entries()) {
      const pass = { isFirst: at === 0, isLast: at === restoreAfterMs.length - 1, signal }
      let waitMs = Math.max(0, startMs + afterMs - performance.now())
      do {
        await delay(waitMs, undefined, { signal }).catch(() => undefined)
        if (signal.aborted) return
        waitMs = retryMs
      } while (!(await this.#tryPass(pass)))
    }
    if (!signal.aborted) this.#moved.clear()
  }

  async #tryPass(pass: RestorePass): Promise<boolean> {
    try {
      await this.#restore(pass, this.#moved)
      return true
    } catch (error) {
      if (!pass.signal.aborted) this.#onFault(error)
      return false
    }
  }
}
