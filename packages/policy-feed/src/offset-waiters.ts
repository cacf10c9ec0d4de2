interface Waiter {
  readonly offset: bigint
  readonly answer: (isReached: boolean) => void
}

/** Those who wait until a reader is beyond an offset. */
export class OffsetWaiters {
  #next = 0n
  readonly #waiting = new Set<Waiter>()

  /** True as soon as the reader is beyond the offset, false at the deadline. */
  wait(offset: bigint, deadlineMs: number): Promise<boolean> {
    if (this.#next > offset) return Promise.resolve(true)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => waiter.answer(false), deadlineMs)
    const waiter: Waiter = {
      offset,
      answer: (isReached) => {
        clearTimeout(timer)
        this.#waiting.delete(waiter)
        resolve(isReached)
      },
    }
    this.#waiting.add(waiter)
    return promise
  }

  moveTo(next: bigint): void {
    this.#next = next
    for (const waiter of this.#waiting) if (next > waiter.offset) waiter.answer(true)
  }

  /** The topic may be another one now. */
  restart(): void {
    this.#next = 0n
  }

  /** Nobody waits any longer. */
  close(): void {
    for (const waiter of this.#waiting) waiter.answer(false)
  }
}
