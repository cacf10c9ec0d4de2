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

/** The parts of Fastify's request that the plugin reads. */
export interface FastifyRequestLike extends Arrival, WithWeir {
  readonly url: string
}

/** The parts of Fastify's reply that the plugin uses. */
export interface FastifyReplyLike {
  readonly sent: boolean
  readonly raw: Leaving & { destroy(): unknown }
  code(status: number): unknown
  header(name: string, value: string): unknown
  send(bytes: Uint8Array): unknown
  hijack(): unknown
}

type Hook = (request: FastifyRequestLike, reply: FastifyReplyLike, next: (error?: Error) => void) => void

/** The hook in which a request is checked. */
export type WeirFastifyHook = 'onRequest' | 'preValidation' | 'preHandler'

/** The parts of a Fastify instance that the plugin uses. */
export interface FastifyLike {
  hasRequestDecorator(name: string): boolean
  decorateRequest(name: string, value: null): unknown
  addHook(name: WeirFastifyHook, hook: Hook): unknown
}

/** The client of the plugin, the check that it makes, and when. */
export interface WeirFastifyOptions {
  readonly client: WeirClient
  /** Returns the check of a request; undefined lets it pass. `{ route: 'METHOD /path' }` unless given. */
  ask?(request: FastifyRequestLike): OptionalCheck | Promise<OptionalCheck>
  /** `onRequest` unless given: before the body is read. What `ask` reads must be available by then. */
  readonly hook?: WeirFastifyHook | undefined
}

const askDefault = ({ method, url }: FastifyRequestLike): OptionalCheck => ({ route: routeOf(method, url) })

/**
 * A plugin for Fastify 5. It applies to the instance it is registered on and those below. An allowed request continues
 * with the limits in its answer's headers and the result as `request.weir`; a denied one is answered as Weir's proxy
 * would.
 */
export function weirFastify(app: FastifyLike, options: WeirFastifyOptions, done: (error?: Error) => void): void {
  const { client, ask = askDefault, hook = 'onRequest' } = options
  // A second plugin, for some routes below, checks again.
  if (!app.hasRequestDecorator('weir')) app.decorateRequest('weir', null)
  /** Whether the request goes on. */
  const answer = (request: FastifyRequestLike, reply: FastifyReplyLike, fate: CheckOutcome): boolean => {
    // Another hook has answered meanwhile, such as one with a time-out.
    if (reply.sent) return false
    switch (fate.kind) {
      case 'pass':
        storeResult(request, fate.result)
        setHeaders(reply, fate.result?.headers)
        return true
      case 'refuse':
        reply.code(fate.refusal.status)
        setHeaders(reply, fate.refusal.headers)
        // Bytes, because to a text Fastify adds a charset, which this media type does not have.
        reply.send(new TextEncoder().encode(JSON.stringify(fate.refusal.problem)))
        return false
      case 'drop':
        reply.hijack()
        reply.raw.destroy()
        return false
    }
  }
  // With a callback: a request that is decided here makes no promise.
  app.addHook(hook, (request, reply, next) => {
    const passes = arrive(
      () => ask(request),
      client,
      reply.raw,
      (fate) => answer(request, reply, fate),
    )
    const fail = (error: unknown) => next(error instanceof Error ? error : new Error(String(error)))
    if (typeof passes === 'object') passes.then((isAllowed) => isAllowed && next(), fail)
    else if (passes) next()
  })
  done()
}

function setHeaders(reply: FastifyReplyLike, headers: Readonly<Record<string, string>> = {}): void {
  for (const name in headers) reply.header(name, headers[name] ?? '')
}

// What fastify-plugin does: without it the hook would hold only within the plugin itself.
Object.assign(weirFastify, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'weir' })
