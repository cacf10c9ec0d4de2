/** @fastify/rate-limit on Redis, set up as its documentation shows it: one limit, by caller. */
import rateLimit from '@fastify/rate-limit'
import { Redis } from 'ioredis'
import { answer, type CheckRequest, callerOf, newServer, readArguments, schema } from './answer.ts'

const { port, redisUrl } = readArguments()
const app = newServer()
await app.register(rateLimit, {
  // The two settings that its documentation recommends for this connection.
  redis: new Redis(redisUrl, { connectTimeout: 500, maxRetriesPerRequest: 1 }),
  nameSpace: 'bench:rate-limit:',
  max: 1_000_000_000,
  timeWindow: '1 minute',
  // As documented for callers that are known only by what they send.
  hook: 'preHandler',
  keyGenerator: (request) => callerOf(request.body),
})

app.post<CheckRequest>('/v1/check', { schema }, async () => answer)
await app.listen({ port, host: '127.0.0.1' })
