/**
 * Fastify with @weir/client, set up as its documentation shows it: every request asks an ingress before it is served.
 */
import { createClient, weirFastify } from '@weir/client'
import { checkedRoute, token } from '../ingress/caller.ts'
import { answer, type CheckRequest, newServer, readArguments, schema } from './answer.ts'

/** As long as others wait for Redis on a busy machine: an answer without Weir would measure nothing. */
const timeoutMs = 5_000

const { port, weirUrl } = readArguments()
const app = newServer()
await app.register(weirFastify, {
  client: createClient({ url: weirUrl, key: token, timeoutMs }),
  // Callers are known only by what they send.
  hook: 'preHandler',
  ask: (request) => ({ subject: 'body' in request ? callerOf(request.body) : '', route: checkedRoute }),
})

function callerOf(body: unknown): string {
  return typeof body === 'object' && body !== null && 'subject' in body ? String(body.subject) : ''
}

app.post<CheckRequest>('/v1/check', { schema }, async () => answer)
await app.listen({ port, host: '127.0.0.1' })
