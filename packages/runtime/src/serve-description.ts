import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

/** Also with a weight, but for 0. */
const gzipAccepted = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/

/** Whether a header `Accept-Encoding` takes gzip. */
export const acceptsGzip = (accepted: string | readonly string[] = ''): boolean => gzipAccepted.test(String(accepted))

/** Whether a header `If-None-Match` names this tag. */
export const isKnown = (known: string | undefined, etag: string): boolean =>
  known?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag.replace(/^W\//, '')) === true

/** Serves `GET /openapi.json` to every caller. The text is made once, and all answers are this one buffer. */
export function serveDescription(app: FastifyInstance, describe: () => unknown): void {
  let made: { readonly plain: Buffer; readonly zipped: Buffer; readonly etag: string } | undefined
  const make = () => {
    const plain = Buffer.from(JSON.stringify(describe()))
    return { plain, zipped: gzipSync(plain), etag: `W/"${hash('sha256', plain, 'base64url')}"` }
  }
  app.get('/openapi.json', { schema: { hide: true } }, async ({ headers }, reply) => {
    made ??= make()
    const { plain, zipped, etag } = made
    reply.headers({ etag, 'cache-control': 'no-cache', vary: 'Accept-Encoding' })
    if (isKnown(headers['if-none-match'], etag)) return reply.code(304).send()
    reply.type('application/json; charset=utf-8')
    if (!acceptsGzip(headers['accept-encoding'])) return reply.send(plain)
    return reply.header('content-encoding', 'gzip').send(zipped)
  })
}
