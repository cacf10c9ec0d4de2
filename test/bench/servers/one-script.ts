/** Fastify and one small script call for each request: the floor for any limiter that asks Redis every time. */
import { Redis, type Result } from 'ioredis'
import { answer, type CheckRequest, newServer, readArguments, schema } from './answer.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    countInWindow(key: string, windowMs: number): Result<number, Context>
  }
}

const windowMs = 60_000
const { port, redisUrl } = readArguments()
const redis = new Redis(redisUrl)
redis.defineCommand('countInWindow', {
  numberOfKeys: 1,
  lua: `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return count`,
})

const app = newServer()
app.post<CheckRequest>('/v1/check', { schema }, async (request, reply) => {
  const count = await redis.countInWindow(`bench:one-script:${request.body.subject}`, windowMs)
  return count > 1_000_000_000 ? reply.code(429).send() : answer
})
await app.listen({ port, host: '127.0.0.1' })
