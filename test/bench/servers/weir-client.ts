/**
 * Fastify with @weir/client, set up as its documentation shows it: every request asks an ingress before it is served.
 */
import { createClient, weirFastify } from '@weir/client'
import { checkedRoute, token } from '../ingress/caller.ts'
import { answer, type CheckRequest, callerOf, clientTimeoutMs, newServer, readArguments, schema } from './answer.ts'

const { port, weirUrl, leases } = readArguments()
const app = newServer()
await app.register(weirFastify, {
  client: createClient({ url: weirUrl, key: token, timeoutMs: clientTimeoutMs, leases }),
  // Callers are known only by what they send.
  hook: 'preHandler',
  ask: (request) => ({ subject: 'body' in request ? callerOf(request.body) : '', route: checkedRoute }),
})

app.post<CheckRequest>('/v1/check', { schema }, async () => answer)
await app.listen({ port, host: '127.0.0.1' })
