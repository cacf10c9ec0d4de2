import type { FastifyInstance } from 'fastify'
import type { StreamRefusal } from '../live/live-decisions.ts'
import { answerProblem, tooManyQuestions } from './problems.ts'

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

/** A browser opens six connections; ClickHouse answers more questions than these no sooner. */
const questions: Places = { all: 32, perCredential: 8 }

/**
 * Bounds how many questions of customers and about usage are answered at once. Streams of decisions have a bound of
 * their own.
 */
export function boundQuestions(app: FastifyInstance): void {
  const places = new PlaceCounter(questions)
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
