import { type Arrival, type Asked, checkArrival, type Leaving, note, routeOf, type WithWeir } from './check-arrival.ts'
import type { WeirClient } from './create-client.ts'

/** What is needed of Express's request. */
export interface ExpressRequest extends Arrival, WithWeir {
  readonly originalUrl?: string | undefined
  readonly url?: string | undefined
}

/** What is needed of Express's response, which is Node's own. */
export interface ExpressResponse extends Leaving {
  statusCode: number
  readonly headersSent: boolean
  readonly writableEnded: boolean
  setHeader(name: string, value: string): unknown
  end(text: string): unknown
  destroy(): unknown
}

/** What the middleware asks, and whom. */
export interface WeirExpressOptions {
  readonly client: WeirClient
  /** What is asked for a request; undefined lets it pass. `{ route: 'METHOD /path' }` unless given. */
  ask?(request: ExpressRequest): Asked | Promise<Asked>
}

const askDefault = (request: ExpressRequest): Asked => ({
  route: routeOf(request.method, request.originalUrl ?? request.url),
})

/**
 * Middleware for Express 4 and 5. What is allowed goes on with the limits in its answer's headers and the result as
 * `request.weir`; what is not is answered as Weir's proxy would; errors go to `next`.
 */
export function weirExpress({ client, ask = askDefault }: WeirExpressOptions) {
  return function checkWithWeir(
    request: ExpressRequest,
    response: ExpressResponse,
    next: (error?: unknown) => void,
  ): void {
    // Its errors must not come back as errors of the check: `next` runs the rest of the application.
    check(request, response).then(
      (passes) => passes && next(),
      (error: unknown) => next(error),
    )
  }

  async function check(request: ExpressRequest, response: ExpressResponse): Promise<boolean> {
    const fate = await checkArrival(client, await ask(request), response)
    switch (fate.kind) {
      case 'pass':
        note(request, fate.result)
        if (response.headersSent) return true
        for (const [name, value] of Object.entries(fate.result?.headers ?? {})) response.setHeader(name, value)
        return true
      case 'refuse':
        // Somebody has answered meanwhile, such as a middleware that keeps a time.
        if (response.headersSent) {
          if (!response.writableEnded) response.destroy()
          return false
        }
        response.statusCode = fate.refusal.status
        for (const [name, value] of Object.entries(fate.refusal.headers)) response.setHeader(name, value)
        response.end(JSON.stringify(fate.refusal.problem))
        return false
      case 'drop':
        response.destroy()
        return false
    }
  }
}
