/** @fastify/http-proxy as its documentation shows it; with `--redis` behind @fastify/rate-limit, one limit by key. */
import httpProxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import { Redis } from 'ioredis'
import { newServer, readArguments } from './answer.ts'

const { port, redisUrl, upstreamUrl } = readArguments()
const app = newServer()
if (redisUrl !== '') {
  await app.register(rateLimit, {
    redis: new Redis(redisUrl, { connectTimeout: 500, maxRetriesPerRequest: 1 }),
    nameSpace: 'bench:http-proxy:',
    max: 1_000_000_000,
    timeWindow: '1 minute',
    keyGenerator: (request) => request.headers.authorization ?? '',
  })
}
await app.register(httpProxy, { upstream: upstreamUrl })
await app.listen({ port, host: '127.0.0.1' })
