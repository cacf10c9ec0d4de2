import type { ServerResponse } from 'node:http'

/** A quarter of a small machine: 25 prompts of 10 MB at a time, or thousands of usual ones. */
const bytesMaxDefault = 256 * 1_048_576

/** Of all bytes, for one subject. */
const shareMax = 1 / 4

/** The bodies of metered requests that this process has in memory, until they are answered. */
export class BodyMemory {
  readonly #bytesMax: number
  #bytes = 0
  /** By sharer, as `sharerOf` names them: one alone cannot take what others need. */
  readonly #shares = new Map<string, number>()

  /** @param bytesMax given by tests */
  constructor(bytesMax: number = bytesMaxDefault) {
    this.#bytesMax = bytesMax
  }

  /** Returns what asks for more bytes of one body, and is told no where there is no space for its sharer. */
  of(response: ServerResponse, sharer: string): (bytes: number) => boolean {
    let held = 0
    response.once('close', () => {
      this.#bytes -= held
      const left = (this.#shares.get(sharer) ?? 0) - held
      if (left > 0) this.#shares.set(sharer, left)
      else this.#shares.delete(sharer)
      held = 0
    })
    return (bytes) => {
      const share = (this.#shares.get(sharer) ?? 0) + bytes
      const isFull = this.#bytes + bytes > this.#bytesMax || share > this.#bytesMax * shareMax
      if (response.destroyed || isFull) return false
      this.#bytes += bytes
      this.#shares.set(sharer, share)
      held += bytes
      return true
    }
  }
}
