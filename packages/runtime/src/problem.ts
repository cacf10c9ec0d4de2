import { type IncomingMessage, maxHeaderSize, type ServerOptions } from 'node:http'
import type { Duplex } from 'node:stream'
import { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import type { ListenerTls } from './tls-listener.ts'

/** An error as HTTP clients get it, by RFC 9457. Every `type` of ours has a row in docs/errors.md. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** What was wrong with this very request and what to do. */
  readonly detail: string
  readonly [extension: string]: unknown
}

/** Problem types of our own, by the last word of their URN. */
export const problemType = (word: string): string => `urn:weir:problem:${word}`

/** A problem of our own, by the last word of its URN. */
export const problem = (word: string, title: string, status: number, detail: string): Problem => ({
  type: problemType(word),
  title,
  status,
  detail,
})

/** The problem of a request that is wrong in itself. */
export const badRequest = (detail: string, status = 400): Problem =>
  problem('bad-request', 'Bad request', status, detail)

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return (
    reply
      .code(problem.status)
      .header('content-type', 'application/problem+json')
      .header('cache-control', 'no-store')
      // Bytes, because to a text Fastify adds a charset, which this media type does not have.
      .send(Buffer.from(JSON.stringify(problem)))
  )
}

/** Headers of a request. Browsers send 20, chains of proxies add as many. */
const headersMax = 200

/** The refusal of a request with more headers or bytes of them than a listener takes. */
export const headersTooLarge = (bytesMax: number): Problem => {
  const detail = `There must be no more than ${headersMax} headers, of ${bytesMax} bytes together.`
  return problem('headers-too-large', 'Headers too large', 431, detail)
}

/** Whether a request has more than `headersMax`. Node drops what comes after the 1,000th without a word. */
export const hasTooManyHeaders = ({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean =>
  rawHeaders.length > 2 * headersMax

/** Refuses requests with too many headers, before any header is believed. `bytesMax` is the listener's own. */
export function boundHeaders(app: FastifyInstance, bytesMax: number): void {
  const problem = headersTooLarge(bytesMax)
  app.addHook('onRequest', (request, reply, done) => {
    if (hasTooManyHeaders(request.raw)) sendProblem(reply, problem)
    else done()
  })
}

/**
 * A header that came twice is one value with a comma, which is no credential; Node would keep the first of some and say
 * nothing.
 */
export const joinDuplicateHeaders = true

function headProblem(code: string | undefined, headerBytesMax: number): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge(headerBytesMax)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return badRequest('The head of the request did not come in time.', 408)
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return badRequest('The chunk extensions are too long.', 413)
  return badRequest('This is no HTTP/1.1 request that can be read in one way only.')
}

/** The answer, head and body, to what Node's parser refuses: there is no response object then. */
export function answerToNoRequest({ code }: { readonly code?: string }, headerBytesMax: number): string {
  const problem = headProblem(code, headerBytesMax)
  const body = JSON.stringify(problem)
  const reasons: Record<number, string> = { 400: 'Bad Request', 408: 'Request Timeout', 413: 'Content Too Large' }
  const reason = reasons[problem.status] ?? 'Request Header Fields Too Large'
  return `HTTP/1.1 ${problem.status} ${reason}\r\nconnection: close\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/** What every listener is made with: our own logger, no line per request, and no logger made for each. */
export const listenerOptions = (logger: FastifyBaseLogger, tls?: ListenerTls, http: ServerOptions = {}) => ({
  // Fastify takes one of them, and its types a server of one kind.
  ...({ [tls === undefined ? 'http' : 'https']: { joinDuplicateHeaders, ...http, ...tls?.options } } as object),
  clientErrorHandler: (error: Error & { code?: string }, socket: Duplex) => {
    if (socket.writable && error.code !== 'ECONNRESET') {
      socket.write(answerToNoRequest(error, http.maxHeaderSize ?? maxHeaderSize))
    }
    socket.destroy()
  },
  loggerInstance: logger,
  logController: new LogController({ disableRequestLogging: true }),
  childLoggerFactory: () => logger,
  // A stop has a deadline of its own, and may wait for its last answers until then.
  pluginTimeout: 0,
})

/** Every error that Fastify itself finds (bad JSON, a body too large) as a problem; what is our fault is logged. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) request.log.error({ err: error, request_id: request.id }, 'request failed')
    const detail = status >= 500 ? `The request could not be served; the log names it ${request.id}.` : error.message
    const found = status >= 500 ? problem('internal', 'Internal error', status, detail) : badRequest(detail, status)
    return sendProblem(reply, found)
  })
}

/** An unknown path as a problem that says which paths there are. */
export function answerUnknownPaths(app: FastifyInstance, paths: string): void {
  app.setNotFoundHandler((request, reply) => {
    const detail = `There is no ${request.method} ${request.url.split('?')[0]} here. There is: ${paths}`
    return sendProblem(reply, problem('not-found', 'Not found', 404, detail))
  })
}
