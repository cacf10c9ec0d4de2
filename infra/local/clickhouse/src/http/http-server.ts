import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { toServerException } from '../engine/exception.ts'
import { webPage } from './access.ts'
import { type Handling, handleQuery } from './handle-query.ts'
import { respondException } from './respond.ts'

/** Ten seconds, as a server has; clients should close idle connections sooner. */
const keepAliveMs = 10_000
/** Statements in the URL and their parameters; a server's own bound is 1 MiB for the URL. */
const headerBytesMax = 1024 ** 2
/** An upload has hours; a client that sends no headers does not. */
const headersTimeoutMs = 60_000

const help = `
Use / or /ping for health checks.
Or /replicas_status for more sophisticated health checks.

Send queries from your program with POST method or GET /?query=...
`

function sendText(response: ServerResponse, status: number, text: string): void {
  const headers = { 'content-type': 'text/plain; charset=UTF-8', 'content-length': Buffer.byteLength(text) }
  response.writeHead(status, headers).end(text)
}

/** How a request ended, for the log. */
export interface RequestEnd {
  readonly queryId: string
  readonly status: number
  readonly code: number | undefined
  readonly elapsedMs: number
}

async function answer(
  handling: Handling,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number | undefined> {
  const { facts } = handling.server.engine
  const disconnected = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) disconnected.abort(new Error('the client disconnected'))
  })
  try {
    await handleQuery(handling, request, response, disconnected.signal)
    return undefined
  } catch (error) {
    const exception = toServerException(error)
    if (disconnected.signal.aborted) return exception.clickhouseCode
    if (response.headersSent) response.destroy()
    else respondException(response, exception, facts)
    return exception.clickhouseCode
  }
}

async function route(
  handling: Handling,
  request: IncomingMessage,
  response: ServerResponse,
  ended: (end: RequestEnd) => void,
): Promise<void> {
  const startedAt = performance.now()
  const [path = '/', search = ''] = (request.url ?? '/').split('?')
  const { facts } = handling.server.engine
  response.setHeader('x-clickhouse-server-display-name', hostname())
  const fromPage = webPage(request.headers, handling.host)
  if (fromPage !== undefined) return sendText(response, 403, `${fromPage}\n`)
  const reads = request.method === 'GET' || request.method === 'HEAD'
  if (reads && (path === '/ping' || path === '/replicas_status')) return sendText(response, 200, 'Ok.\n')
  if (path !== '/' && path !== '/query') return sendText(response, 404, `There is no handle ${path}\n${help}`)
  if (reads && !new URLSearchParams(search).has('query')) return sendText(response, 200, 'Ok.\n')
  if (request.method !== 'POST' && request.method !== 'PUT' && !reads)
    return sendText(response, 501, `${request.method} is not supported\n`)
  response.setHeader('x-clickhouse-timezone', facts.timezone)
  const code = await answer(handling, request, response)
  const queryId = String(response.getHeader('x-clickhouse-query-id') ?? '')
  ended({ queryId, code, status: response.statusCode, elapsedMs: Math.round(performance.now() - startedAt) })
}

/**
 * Creates the server, not listening yet: it can hold its port before the engine is open. Requests that come before
 * `serve` is called wait for it. `ended` is called once for each statement.
 */
export function createHttpServer(ended: (end: RequestEnd) => void): {
  http: Server
  serve: (handling: Handling) => void
} {
  const { promise: opened, resolve: serve } = Promise.withResolvers<Handling>()
  const http = createServer(
    {
      keepAliveTimeout: keepAliveMs,
      headersTimeout: headersTimeoutMs,
      requestTimeout: 0,
      maxHeaderSize: headerBytesMax,
    },
    (request, response) => {
      opened
        .then((handling) => route(handling, request, response, ended))
        .catch((error: unknown) => response.destroy(toServerException(error)))
    },
  )
  return { http, serve }
}
