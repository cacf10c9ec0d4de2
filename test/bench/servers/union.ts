/**
 * Fastify with three limits of rate-limiter-flexible on Redis, together in its union, as its documentation shows it.
 */
import { Redis } from 'ioredis'
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { answer, type CheckRequest, newServer, readArguments, schema } from './answer.ts'

const { port, redisUrl } = readArguments()
const storeClient = new Redis(redisUrl)
const limiters = [60, 3_600, 86_400].map(
  (duration) =>
    new RateLimiterRedis({ storeClient, keyPrefix: `bench:union-${duration}`, points: 1_000_000_000, duration }),
)
const union = new RateLimiterUnion(...limiters)

const app = newServer()
app.post<CheckRequest>('/v1/check', { schema }, async (request) => {
  // A refusal rejects.
  await union.consume(request.body.subject)
  return answer
})
await app.listen({ port, host: '127.0.0.1' })
