import type { FastifyInstance } from 'fastify'
import { answerProblem, type StreamRefusal, tooManyQuestions } from './problems.ts'

/** How many there may be at once. */
export interface Places {
  readonly all: number
  readonly perCredential: number
}

/** Counts what goes on at once, by credential. */
export class PlaceCounter {
  readonly #taken = new Map<symbol, string>()
  readonly #places: Places

  constructor(places: Places) {
    this.#places = places
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#taken.size
  }

  /** Takes a place for this credential. Returns what frees it, or why there is none. */
  take(by: string): { readonly leave: () => void } | { readonly refusal: StreamRefusal } {
    const { all, perCredential } = this.#places
    if (this.#taken.size >= all) return { refusal: 'of the console' }
    const own = [...this.#taken.values()].filter((one) => one === by)
    if (own.length >= perCredential) return { refusal: 'of the credential' }
    const place = Symbol()
    this.#taken.set(place, by)
    return { leave: () => this.#taken.delete(place) }
  }
}

/** The places of a console, by what takes them. */
export type ConsolePlaces = ReturnType<typeof createPlaces>

/** Makes the places of a console; all are free. */
export const createPlaces = () => ({
  /** A browser opens six connections; ClickHouse answers more questions than these no sooner. */
  questions: new PlaceCounter({ all: 32, perCredential: 8 }),
  /**
   * Each is a connection to ClickHouse and a large question there: half of what the console's client opens. A caller
   * that downloads does so one after the other; the second is for one that begins while another ends.
   */
  exports: new PlaceCounter({ all: 8, perCredential: 2 }),
})

/**
 * Bounds how many questions of customers and about usage are answered at once. Streams of decisions have a bound of
 * their own.
 */
export function boundQuestions(app: FastifyInstance, places: PlaceCounter): void {
  app.addHook('preHandler', async (request, reply) => {
    const { scope, reach, isLive } = request.routeOptions.config
    if ((scope !== 'usage' && reach !== 'own') || isLive === true) return undefined
    const place = places.take(request.by)
    if ('refusal' in place) {
      return answerProblem(reply, tooManyQuestions(`As many questions ${place.refusal} are being answered as may be.`))
    }
    reply.raw.once('close', place.leave)
    // Its caller left while the credential was looked at: nothing closes any more.
    if (reply.raw.destroyed) place.leave()
  })
}
