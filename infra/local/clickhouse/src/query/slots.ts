import { serverException } from '../engine/exception.ts'

/** Limits how many statements run. A bounded number waits in order, and more are refused as ClickHouse refuses them. */
export class Slots {
  readonly #bounds: { readonly runningMax: number; readonly waitingMax: number }
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(bounds: { readonly runningMax: number; readonly waitingMax: number }) {
    this.#bounds = bounds
  }

  get running(): number {
    return this.#running
  }

  /** Resolves to the function that releases the slot. Rejects with the signal's reason if the client disconnects. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#running < this.#bounds.runningMax) {
      this.#running++
    } else {
      if (this.#waiting.length >= this.#bounds.waitingMax) {
        throw serverException(202, `Too many simultaneous queries. Maximum: ${this.#bounds.runningMax}`)
      }
      await this.#turn(signal)
    }
    let given = false
    return () => {
      if (given) return
      given = true
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        const index = this.#waiting.indexOf(turn)
        if (index >= 0) this.#waiting.splice(index, 1)
        reject(signal.reason)
      }
      this.#waiting.push(turn)
      signal.addEventListener('abort', leave, { once: true })
    })
  }
}
