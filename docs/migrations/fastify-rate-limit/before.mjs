// An API limited by @fastify/rate-limit: PORT=3000 REDIS_URL=redis://127.0.0.1:6379 node before.mjs
import rateLimit from '@fastify/rate-limit'
import fastify from 'fastify'
import { Redis } from 'ioredis'

const app = fastify()
await app.register(rateLimit, {
  redis: new Redis(process.env.REDIS_URL, { connectTimeout: 500, maxRetriesPerRequest: 1 }),
  skipOnError: true,
  keyGenerator: (request) => request.headers['x-api-key'],
  timeWindow: '1 hour',
  max: (_request, key) => (key === 'key-of-gold' ? 40 : 20),
  allowList: ['key-of-monitor'],
  enableDraftSpec: true,
})

app.get('/things', async () => 'things')
app.get('/search', { config: { rateLimit: { max: 5 } } }, async () => 'found')
app.get('/health', { config: { rateLimit: false } }, async () => 'well')
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
