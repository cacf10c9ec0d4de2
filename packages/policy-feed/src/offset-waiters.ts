import { withTimeout } from '@weir/runtime/with-timeout.ts'

/** Callers that wait until the reader has passed an offset. */
export class OffsetWaiters {
  #next = 0n
  #moved = Promise.withResolvers<bigint>()
  #isClosed = false

  /** True as soon as the reader is beyond the offset, false at the deadline or once it is closed. */
  async wait(offset: bigint, deadlineMs: number): Promise<boolean> {
    const endsAt = performance.now() + deadlineMs
    let next = this.#next
    while (next <= offset && !this.#isClosed && performance.now() < endsAt)
      next = await withTimeout(this.#moved.promise, endsAt - performance.now(), this.#next)
    return next > offset
  }

  moveTo(next: bigint): void {
    this.#next = next
    this.#moved.resolve(next)
    this.#moved = Promise.withResolvers()
  }

  /** The topic may be another one now. */
  restart(): void {
    this.#next = 0n
  }

  close(): void {
    this.#isClosed = true
    this.#moved.resolve(this.#next)
  }
}
