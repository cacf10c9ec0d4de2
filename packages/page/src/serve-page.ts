import type { FastifyInstance, FastifyReply } from 'fastify'
import { paths } from '../web/paths.ts'
import { type Page, readPage } from './page-files.ts'

const yearS = 31_536_000

/** Serves the console's page, whose files are read when a browser first asks. It holds no data: the API has it. */
export function registerPage(app: FastifyInstance): void {
  let read: Page | undefined
  const page = () => {
    read ??= readPage()
    return read
  }
  const guarded = (reply: FastifyReply) =>
    reply
      .header('content-security-policy', page().contentSecurityPolicy)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
      .header('cross-origin-opener-policy', 'same-origin')
      .header('cross-origin-resource-policy', 'same-origin')

  for (const path of paths) {
    app.get(path, { schema: { hide: true } }, async (_, reply) =>
      guarded(reply).type('text/html; charset=utf-8').header('cache-control', 'no-cache').send(page().shell),
    )
  }
  // What a browser finds nowhere is a page that says so; programs get the problem of any unknown path.
  app.get('/:page', { schema: { hide: true } }, async (request, reply) => {
    if (request.headers.accept?.includes('text/html') !== true) return reply.callNotFound()
    return guarded(reply)
      .status(404)
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(page().shell)
  })
  app.get<{ Params: { readonly '*': string } }>('/app/*', { schema: { hide: true } }, async (request, reply) => {
    const file = page().files.get(request.url.split('?', 1)[0] ?? '')
    if (file === undefined) return reply.callNotFound()
    const isZipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
    if (isZipped) reply.header('content-encoding', 'gzip')
    return guarded(reply)
      .type(file.type)
      .header('vary', 'Accept-Encoding')
      .header('cache-control', `public, max-age=${yearS}, immutable`)
      .send(isZipped ? file.gzip : file.plain)
  })
}
