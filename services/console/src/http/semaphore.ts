import type { FastifyInstance } from 'fastify'
import { answerProblem, type StreamRefusal, tooManyQuestions } from './problems.ts'

/** How many there may be at once. */
export interface SemaphoreBounds {
  readonly all: number
  readonly perCredential: number
}

/** Bounds what goes on at once, in all and for each credential. */
export class Semaphore {
  readonly #taken = new Map<symbol, string>()
  readonly #bounds: SemaphoreBounds

  constructor(bounds: SemaphoreBounds) {
    this.#bounds = bounds
  }

  /** Permits that are taken. */
  get taken(): number {
    return this.#taken.size
  }

  /** Takes a permit for this credential. Returns what frees it, or why there is none. */
  take(by: string): { readonly leave: () => void } | { readonly refusal: StreamRefusal } {
    const { all, perCredential } = this.#bounds
    if (this.#taken.size >= all) return { refusal: 'for this console' }
    const own = [...this.#taken.values()].filter((one) => one === by)
    if (own.length >= perCredential) return { refusal: 'for this credential' }
    const permit = Symbol()
    this.#taken.set(permit, by)
    return { leave: () => this.#taken.delete(permit) }
  }
}

/** The semaphores of a console, by what they bound. */
export type Semaphores = ReturnType<typeof createSemaphores>

/** Makes the semaphores of a console. */
export const createSemaphores = () => ({
  /** A browser opens six connections; ClickHouse answers more questions than these no sooner. */
  questions: new Semaphore({ all: 32, perCredential: 8 }),
  /**
   * Each is a connection to ClickHouse and a large question there: half of what the console's client opens. A caller
   * that downloads does so one after the other; the second is for one that begins while another ends.
   */
  exports: new Semaphore({ all: 8, perCredential: 2 }),
})

/**
 * Bounds how many questions of customers and about usage are answered at once. Streams of decisions have a bound of
 * their own.
 */
export function boundQuestions(app: FastifyInstance, semaphore: Semaphore): void {
  app.addHook('preHandler', async (request, reply) => {
    const { scope, reach, isLive } = request.routeOptions.config
    if ((scope !== 'usage' && reach !== 'own') || isLive === true) return undefined
    const permit = semaphore.take(request.by)
    if ('refusal' in permit) {
      return answerProblem(reply, tooManyQuestions(`The maximum number of queries ${permit.refusal} is running.`))
    }
    reply.raw.once('close', permit.leave)
    // Its caller left while the credential was looked at: nothing closes any more.
    if (reply.raw.destroyed) permit.leave()
  })
}
