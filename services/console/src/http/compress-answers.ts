import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { acceptsGzip } from '@weir/runtime/serve-description.ts'
import type { FastifyInstance } from 'fastify'

/** Characters of the shortest answer that is compressed; a shorter one fills a packet either way. */
const lengthMin = 1_024
const zip = promisify(gzip)

/**
 * Compresses JSON for those that accept gzip, where a question was asked. Answers to changes may hold a new secret,
 * of which their length must say nothing. Streams go as they come, and the page's files are compressed already.
 */
export function compressAnswers(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    const isQuestion = request.method === 'GET' || request.routeOptions.config.scope === 'usage'
    const isJson = /json/.test(String(reply.getHeader('content-type')))
    if (typeof payload !== 'string' || payload.length < lengthMin || !isQuestion || !isJson) return payload
    reply.header('vary', [reply.getHeader('vary'), 'Accept-Encoding'].filter(Boolean).join(', '))
    if (!acceptsGzip(request.headers['accept-encoding'])) return payload
    reply.removeHeader('content-length')
    reply.header('content-encoding', 'gzip')
    return zip(payload)
  })
}
