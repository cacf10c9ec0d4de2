/** Express with express-rate-limit on Redis, set up as its store's documentation shows: one limit, by caller. */
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { Redis } from 'ioredis'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { answer, callerOf, readArguments } from './answer.ts'

const { port, redisUrl } = readArguments()
const redis = new Redis(redisUrl)
const isReply = (value: unknown): value is RedisReply => value !== undefined

async function sendCommand(command: string, ...rest: string[]): Promise<RedisReply> {
  const reply = await redis.call(command, ...rest)
  if (!isReply(reply)) throw new TypeError(`${command} has no reply`)
  return reply
}

const app = express()
app.use(
  express.json(),
  rateLimit({
    windowMs: 60_000,
    limit: 1_000_000_000,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    keyGenerator: (request) => callerOf(request.body),
    store: new RedisStore({ sendCommand }),
  }),
)
app.post('/v1/check', (_request, response) => {
  response.json(answer)
})
app.listen(port, '127.0.0.1').keepAliveTimeout = 75_000
