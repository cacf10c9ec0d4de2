import type { StreamRefusal } from '../live/live-decisions.ts'

/** Each stream is a connection to ClickHouse and a large question there: half of what the console's client opens. */
const streamsMax = 8
/** A caller that downloads does so one after the other; the second is for one that begins while another ends. */
const perCallerMax = 2

/** The streams of answers that are open, counted by credential. */
export class StreamPlaces {
  readonly #open = new Map<symbol, string>()

  /** Takes a place for a stream of this credential. Returns what frees it, or why there is none. */
  take(by: string): { readonly leave: () => void } | { readonly refusal: StreamRefusal } {
    if (this.#open.size >= streamsMax) return { refusal: 'of the console' }
    const own = [...this.#open.values()].filter((one) => one === by)
    if (own.length >= perCallerMax) return { refusal: 'of the credential' }
    const place = Symbol()
    this.#open.set(place, by)
    return { leave: () => this.#open.delete(place) }
  }
}
