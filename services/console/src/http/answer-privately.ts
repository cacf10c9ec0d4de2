import type { FastifyInstance } from 'fastify'

/** What answers depend on beyond their address: a cache knows of `Authorization` alone by itself. */
const credentials = 'Authorization, X-API-Key, Cookie'

/** Keeps every answer of the API out of caches, unless its route says how it may be kept. */
export function answerPrivately(app: FastifyInstance): void {
  app.addHook('onSend', async ({ url, routeOptions }, reply) => {
    if (!/^\/(v1|session)\b/.test(routeOptions.url ?? url)) return
    const said = reply.getHeader('cache-control') ?? 'no-store'
    reply.header('cache-control', said === 'no-store' ? 'private, no-store' : said)
    reply.header('vary', [reply.getHeader('vary'), credentials].filter(Boolean).join(', '))
  })
}
