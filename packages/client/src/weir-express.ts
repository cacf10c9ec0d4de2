import {
  type Arrival,
  arrive,
  type CheckOutcome,
  type Leaving,
  type OptionalCheck,
  routeOf,
  storeResult,
  type WithWeir,
} from './check-arrival.ts'
import type { WeirClient } from './create-client.ts'

/** The parts of Express's request that the middleware reads. */
export interface ExpressRequest extends Arrival, WithWeir {
  readonly originalUrl?: string | undefined
  readonly url?: string | undefined
}

/** The parts of Express's response, which is Node's own, that the middleware uses. */
export interface ExpressResponse extends Leaving {
  statusCode: number
  readonly headersSent: boolean
  readonly writableEnded: boolean
  setHeader(name: string, value: string): unknown
  end(text: string): unknown
  destroy(): unknown
}

/** The client of the middleware, and the check that it makes. */
export interface WeirExpressOptions {
  readonly client: WeirClient
  /** Returns the check of a request; undefined lets it pass. `{ route: 'METHOD /path' }` unless given. */
  ask?(request: ExpressRequest): OptionalCheck | Promise<OptionalCheck>
}

const askDefault = (request: ExpressRequest): OptionalCheck => ({
  route: routeOf(request.method, request.originalUrl ?? request.url),
})

/**
 * Returns middleware for Express 4 and 5. An allowed request continues with the limits in its answer's headers and the
 * result as `request.weir`; a denied one is answered as Weir's proxy would; errors go to `next`.
 */
export function weirExpress({ client, ask = askDefault }: WeirExpressOptions) {
  return function checkWithWeir(
    request: ExpressRequest,
    response: ExpressResponse,
    next: (error?: unknown) => void,
  ): void {
    const passes = arrive(
      () => ask(request),
      client,
      response,
      (fate) => answer(request, response, fate),
    )
    // Errors of the rest of the application, which `next` runs, must not come back as errors of the check.
    if (typeof passes === 'object') passes.then((isAllowed) => isAllowed && next(), next)
    else if (passes) next()
  }

  function answer(request: ExpressRequest, response: ExpressResponse, fate: CheckOutcome): boolean {
    switch (fate.kind) {
      case 'pass':
        storeResult(request, fate.result)
        if (response.headersSent) return true
        setHeaders(response, fate.result?.headers)
        return true
      case 'refuse':
        // Another middleware has answered meanwhile, such as one with a time-out.
        if (response.headersSent) {
          if (!response.writableEnded) response.destroy()
          return false
        }
        response.statusCode = fate.refusal.status
        setHeaders(response, fate.refusal.headers)
        response.end(JSON.stringify(fate.refusal.problem))
        return false
      case 'drop':
        response.destroy()
        return false
    }
  }
}

function setHeaders(response: ExpressResponse, headers: Readonly<Record<string, string>> = {}): void {
  for (const name in headers) response.setHeader(name, headers[name] ?? '')
}
