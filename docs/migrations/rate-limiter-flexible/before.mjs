// Answers that cost points, limited by rate-limiter-flexible: PORT=3000 REDIS_URL=redis://127.0.0.1:6379 node before.mjs
import { createServer } from 'node:http'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'

const day = new RateLimiterRedis({
  storeClient: new Redis(process.env.REDIS_URL),
  ...{ keyPrefix: 'day', points: 1000, duration: 24 * 60 * 60, blockDuration: 10 * 60 },
})

createServer(async ({ headers }, response) => {
  const user = headers['x-user'] ?? 'nobody'
  const [guessed, spent] = [Number(headers['x-guessed']), Number(headers['x-spent'])]
  try {
    const { remainingPoints } = await day.consume(user, guessed)
    response.setHeader('X-RateLimit-Remaining', remainingPoints)
  } catch (refused) {
    if (refused instanceof Error) return response.writeHead(503).end('Redis is away')
    return response.writeHead(429, { 'Retry-After': Math.ceil(refused.msBeforeNext / 1000) }).end('too much')
  }
  if (spent < guessed) await day.reward(user, guessed - spent)
  response.end('an answer')
}).listen(Number(process.env.PORT), '127.0.0.1')
