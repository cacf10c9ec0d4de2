/** express-rate-limit on Redis, set up as its documentation shows it: one limit, by caller. */
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { Redis } from 'ioredis'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { answer, callerOf, readArguments } from './answer.ts'

const { port, redisUrl } = readArguments()
const redis = new Redis(redisUrl)
const app = express()
app.use(express.json())
app.use(
  rateLimit({
    windowMs: 60_000,
    limit: 1_000_000_000,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    keyGenerator: (request) => callerOf(request.body),
    store: new RedisStore({
      prefix: 'bench:express-rate-limit:',
      sendCommand: (command: string, ...args: string[]) => redis.call(command, ...args) as Promise<RedisReply>,
    }),
  }),
)
app.post('/v1/check', (_, response) => void response.json(answer))
app.listen(port, '127.0.0.1').keepAliveTimeout = 75_000
