import type { ServerResponse } from 'node:http'

/** A quarter of a small machine: 25 prompts of 10 MB at a time, or thousands of usual ones. */
const bytesMaxDefault = 256 * 1_048_576

/** The bodies of metered requests that this process has in memory, until they are answered. */
export class BodyMemory {
  readonly #bytesMax: number
  #bytes = 0

  /** @param bytesMax given by tests */
  constructor(bytesMax: number = bytesMaxDefault) {
    this.#bytesMax = bytesMax
  }

  /** Returns what asks for more bytes of one body, and is told no where there is no space. */
  of(response: ServerResponse): (bytes: number) => boolean {
    let held = 0
    response.once('close', () => {
      this.#bytes -= held
      held = 0
    })
    return (bytes) => {
      if (response.destroyed || this.#bytes + bytes > this.#bytesMax) return false
      this.#bytes += bytes
      held += bytes
      return true
    }
  }
}
