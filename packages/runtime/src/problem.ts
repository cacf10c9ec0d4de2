import { createServer, type IncomingMessage, maxHeaderSize, type RequestListener, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Duplex } from 'node:stream'
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { checkEveryMs, endSilent, inTurn, requestMsMax } from './bound-connections.ts'
import type { ListenerTls } from './tls-listener.ts'

/** An error as HTTP clients get it, by RFC 9457. Every `type` of Weir's own has a row in docs/errors.md. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** What was wrong with this request, and what to do. */
  readonly detail: string
  readonly [extension: string]: unknown
}

/** Returns a problem type of Weir's own, by the last word of its URN. */
const problemType = (word: string): string => `urn:weir:problem:${word}`

/** Returns a problem of Weir's own, by the last word of its URN. */
export const problem = (word: string, title: string, status: number, detail: string): Problem => ({
  type: problemType(word),
  title,
  status,
  detail,
})

/** Returns the problem of a malformed request. */
export const badRequest = (detail: string, status = 400): Problem =>
  problem('bad-request', 'Bad request', status, detail)

/** Answers with a problem, which is never cached. */
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

/** Returns the problem of a request with more headers, or more bytes of them, than a listener accepts. */
export const headersTooLarge = (bytesMax: number): Problem => {
  const detail = `Send at most ${headersMax} headers with at most ${bytesMax} bytes in total.`
  return problem('headers-too-large', 'Headers too large', 431, detail)
}

/** Whether a request has more than `headersMax`. Node drops headers after the 1,000th silently. */
export const hasTooManyHeaders = ({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean =>
  rawHeaders.length > 2 * headersMax

const compressed = badRequest('The body is compressed (Content-Encoding). Send it uncompressed.', 415)

/**
 * Refuses requests with too many headers, before any header is used, and compressed bodies, which nobody here unpacks.
 * `bytesMax` is the listener's own.
 */
export function boundHeaders(app: FastifyInstance, bytesMax: number): void {
  const problem = headersTooLarge(bytesMax)
  app.addHook('onRequest', (request, reply, done) => {
    if (hasTooManyHeaders(request.raw)) sendProblem(reply, problem)
    else if (/[^\s,]/.test(request.headers['content-encoding']?.replaceAll(/identity/gi, '') ?? ''))
      sendProblem(reply, compressed)
    else done()
  })
}

/**
 * A repeated header becomes one value with a comma, which is no credential; Node would silently keep the first of
 * some.
 */
export const joinDuplicateHeaders = true

function headProblem(code: string | undefined, headerBytesMax: number): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge(headerBytesMax)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return badRequest('The request headers did not arrive in time.', 408)
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return badRequest('The chunk extensions are too long.', 413)
  return badRequest('This is not a valid, unambiguous HTTP/1.1 request.')
}

/** Returns the answer, head and body, to bytes that Node's parser refuses: there is no response object then. */
export function answerToNoRequest({ code }: { readonly code?: string }, headerBytesMax: number): string {
  const problem = headProblem(code, headerBytesMax)
  const body = JSON.stringify(problem)
  const reasons: Record<number, string> = { 400: 'Bad Request', 408: 'Request Timeout', 413: 'Content Too Large' }
  const reason = reasons[problem.status] ?? 'Request Header Fields Too Large'
  return `HTTP/1.1 ${problem.status} ${reason}\r\nconnection: close\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/**
 * Returns the options of every listener: our own logger, no line per request, no logger for each request, and bounds of
 * what a connection may hold in memory.
 */
export const listenerOptions = (logger: FastifyBaseLogger, tls?: ListenerTls, http: ServerOptions = {}) => ({
  serverFactory: (serve: RequestListener, { keepAliveTimeout, requestTimeout }: ServerOptions) => {
    const options = { joinDuplicateHeaders, connectionsCheckingInterval: checkEveryMs, ...http, ...tls?.options }
    const server = tls === undefined ? createServer(options, inTurn(serve)) : createSecureServer(options, inTurn(serve))
    // Together they may contradict each other until both are set.
    return endSilent(Object.assign(server, { keepAliveTimeout, requestTimeout }))
  },
  requestTimeout: requestMsMax,
  clientErrorHandler: (error: Error & { code?: string }, socket: Duplex) => {
    if (socket.writable && error.code !== 'ECONNRESET') {
      socket.write(answerToNoRequest(error, http.maxHeaderSize ?? maxHeaderSize))
    }
    socket.destroy()
  },
  // Paths that cannot be decoded, or name something too long: no route, hook or error handler sees them.
  frameworkErrors: (error: Error & { statusCode?: number }, _request: unknown, reply: FastifyReply) =>
    sendProblem(reply, badRequest(error.message, error.statusCode)),
  loggerInstance: logger,
  logController: new LogController({ disableRequestLogging: true }),
  childLoggerFactory: () => logger,
  // A slash at the end is a habit of clients, and nowhere another resource.
  routerOptions: { ignoreTrailingSlash: true },
  // A stop has a deadline of its own, and may wait for its last answers until then.
  pluginTimeout: 0,
})

type Answerer = (request: FastifyRequest, reply: FastifyReply) => FastifyReply

/** Answers errors that Fastify itself finds (bad JSON, a body too large) as problems; it logs internal errors. */
export function answerErrors(app: FastifyInstance, answerUnrouted?: Answerer): void {
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    // No route reads its body.
    if (request.is404 && answerUnrouted !== undefined) return answerUnrouted(request, reply)
    const status = error.statusCode ?? 500
    if (status >= 500) request.log.error({ err: error, request_id: request.id }, 'request failed')
    const detail = status >= 500 ? `The request failed. See the log entry with the id ${request.id}.` : error.message
    const found = status >= 500 ? problem('internal', 'Internal error', status, detail) : badRequest(detail, status)
    return sendProblem(reply, found)
  })
}

/** Whether a path is one of a route's, as `/v1/plans/:name` has them. */
function isPathOf(url: string, path: string): boolean {
  const parts = path.replace(/\/$/, '').split('/')
  const wanted = url.split('/')
  return wanted.length === parts.length && wanted.every((part, i) => part.startsWith(':') || part === parts[i])
}

/**
 * As `answerErrors`, and answers what no route takes: 405 with the methods of a path that has others, else 404 with
 * `paths`, the text that says which there are. Knows the routes that are added after it.
 */
export function answerErrorsAndUnrouted(app: FastifyInstance, paths: string): void {
  const routes: { readonly url: string; readonly methods: readonly string[] }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    routes.push({ url, methods: [method].flat() })
  })
  const answer: Answerer = (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const methods = routes.filter(({ url }) => isPathOf(url, path)).flatMap((route) => route.methods)
    if (methods.length === 0) {
      return sendProblem(reply, problem('not-found', 'Not found', 404, `There is no ${path} here. Available: ${paths}`))
    }
    const allow = [...new Set(methods)].toSorted().join(', ')
    reply.header('allow', allow)
    const detail = `${path} takes ${allow}, not ${request.method}.`
    return sendProblem(reply, problem('method-not-allowed', 'Method not allowed', 405, detail))
  }
  app.setNotFoundHandler(answer)
  answerErrors(app, answer)
}
