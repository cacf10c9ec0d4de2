import { type Arrival, type Asked, checkArrival, type Leaving, note, routeOf, type WithWeir } from './check-arrival.ts'
import type { WeirClient } from './create-client.ts'

/** What is needed of Fastify's request. */
export interface FastifyRequestLike extends Arrival, WithWeir {
  readonly url: string
}

/** What is needed of Fastify's reply. */
export interface FastifyReplyLike {
  readonly sent: boolean
  readonly raw: Leaving & { destroy(): unknown }
  code(status: number): unknown
  header(name: string, value: string): unknown
  send(bytes: Uint8Array): unknown
  hijack(): unknown
}

type Hook = (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>

/** Where in a request's life it is checked. */
export type WeirFastifyHook = 'onRequest' | 'preValidation' | 'preHandler'

/** What is needed of a Fastify instance. */
export interface FastifyLike {
  hasRequestDecorator(name: string): boolean
  decorateRequest(name: string, value: null): unknown
  addHook(name: WeirFastifyHook, hook: Hook): unknown
}

/** What the plugin asks, whom, and when. */
export interface WeirFastifyOptions {
  readonly client: WeirClient
  /** What is asked for a request; undefined lets it pass. `{ route: 'METHOD /path' }` unless given. */
  ask?(request: FastifyRequestLike): Asked | Promise<Asked>
  /** `onRequest` unless given: before the body is read. What `ask` needs must be there by then. */
  readonly hook?: WeirFastifyHook | undefined
}

const askDefault = ({ method, url }: FastifyRequestLike): Asked => ({ route: routeOf(method, url) })

/**
 * A plugin for Fastify 5. It holds for the instance it is registered on and those below. What is allowed goes on with
 * the limits in its answer's headers and the result as `request.weir`; what is not is answered as Weir's proxy would.
 */
export function weirFastify(app: FastifyLike, options: WeirFastifyOptions, done: (error?: Error) => void): void {
  const { client, ask = askDefault, hook = 'onRequest' } = options
  // A second one, for some routes below, asks again.
  if (!app.hasRequestDecorator('weir')) app.decorateRequest('weir', null)
  app.addHook(hook, async (request, reply) => {
    const fate = await checkArrival(client, await ask(request), reply.raw)
    // Somebody has answered meanwhile, such as a hook that keeps a time.
    if (reply.sent) return reply
    switch (fate.kind) {
      case 'pass':
        note(request, fate.result)
        for (const [name, value] of Object.entries(fate.result?.headers ?? {})) reply.header(name, value)
        return undefined
      case 'refuse':
        reply.code(fate.refusal.status)
        for (const [name, value] of Object.entries(fate.refusal.headers)) reply.header(name, value)
        // Bytes, because to a text Fastify adds a charset, which this media type does not have.
        return reply.send(new TextEncoder().encode(JSON.stringify(fate.refusal.problem)))
      case 'drop':
        reply.hijack()
        reply.raw.destroy()
        return reply
    }
  })
  done()
}

// What fastify-plugin does: without it the hook would hold only within the plugin itself.
Object.assign(weirFastify, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'weir',
})
