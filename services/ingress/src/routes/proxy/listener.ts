import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { inTurn } from '@weir/runtime/bound-connections.ts'
import { badRequest, joinDuplicateHeaders } from '@weir/runtime/problem.ts'
import type { ListenerTls } from '@weir/runtime/tls-listener.ts'
import { writeProblem } from './answers.ts'
import { hasBody } from './client-body.ts'
import { ConnectionTurns } from './connection-turns.ts'
import { headerBytesMax, readTarget, type Target } from './read-target.ts'
import { protocolAsked } from './tunnel.ts'

/** A refused client has this long to read its answer and hang up. */
const lingerMs = 5_000

/** Answers a request; it calls `mayContinue` before it reads the body. `protocol` is as in `IncomingRequest`. */
export type ServeRequest = (
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
  mayContinue: () => void,
  protocol?: string,
) => void

/** Bounds of the listener, which tests shorten. */
export const listenerBounds = {
  /** For a whole head, from its first byte on. A slow line needs seconds, a slow-loris minutes. Then 408. */
  headTimeoutMs: 20_000,
  /** How often heads and idle connections are checked. */
  checkEveryMs: 5_000,
  /** A client whose body is incomplete, or that does not read its answer, may pause this long. */
  silentMsMax: 60_000,
}

/** The bounds of one listener. */
export type ListenerBounds = Readonly<typeof listenerBounds>

const upgradeWithBody = badRequest('A request to switch protocols must not have a body.')
const noTunnels = badRequest('CONNECT is not supported. Send the request directly.')
const nothing = () => undefined

/**
 * The server of the proxy. Node's strict parser comes first: it refuses what could be read as two requests. A whole
 * request has no bound in time, because an upload may take hours as long as something of it comes. Only a body that is
 * read before its decision has one.
 */
export function createListener(
  serveRequest: ServeRequest,
  bounds: ListenerBounds = listenerBounds,
  tls?: ListenerTls,
  Answer: typeof ServerResponse = ServerResponse,
): Server {
  const turns = new ConnectionTurns()
  const serve = (request: IncomingMessage, response: ServerResponse, mayContinue: () => void) => {
    if (!turns.begin(request, response)) return
    const read = readTarget(request)
    if ('target' in read) return serveRequest(request, response, read.target, mayContinue)
    turns.lose(request.socket)
    writeProblem(response, read.problem, ['connection', 'close'])
  }

  const options = {
    ServerResponse: Answer,
    maxHeaderSize: headerBytesMax,
    joinDuplicateHeaders,
    headersTimeout: bounds.headTimeoutMs,
    requestTimeout: 0,
    connectionsCheckingInterval: bounds.checkEveryMs,
    insecureHTTPParser: false,
    // Weir checks it, so that the answer is a problem like any other.
    requireHostHeader: false,
    shouldUpgradeCallback: (request: IncomingMessage) => protocolAsked(request) !== undefined,
  }
  const server: Server = tls === undefined ? createServer(options) : createSecureServer({ ...options, ...tls.options })
  server.on(
    'request',
    inTurn((request, response) => serve(request, response, nothing)),
  )
  server.setTimeout(bounds.silentMsMax)
  // No limit, because beyond one Node drops headers in silence; too many are refused with the target.
  server.maxHeadersCount = 0
  // With this listener Node says no 100 by itself: a refused client must not be asked for its body.
  server.on(
    'checkContinue',
    inTurn((request, response) => serve(request, response, () => response.writeContinue())),
  )
  // An expectation other than 100-continue may be ignored (RFC 9110 section 10.1.1); Node would answer 417.
  server.on(
    'checkExpectation',
    inTurn((request, response) => serve(request, response, nothing)),
  )
  const switches = (request: IncomingMessage, _socket: Duplex, head: Buffer) => {
    const { socket } = request
    // Node does not listen any more; the answer or the tunnel finds the socket closed.
    socket.on('error', nothing)
    // Node has released the connection, and the answers before this one could not be written to their ends.
    if (turns.isAnswering(socket)) return socket.destroy()
    socket.unshift(head)
    const response = responseOn(request, Answer)
    const refusal = request.method === 'CONNECT' ? noTunnels : hasBody(request) ? upgradeWithBody : undefined
    const read = refusal === undefined ? readTarget(request) : { problem: refusal }
    if ('problem' in read) writeProblem(response, read.problem, ['connection', 'close'])
    else serveRequest(request, response, read.target, nothing, protocolAsked(request) ?? '')
  }
  server.on('upgrade', switches).on('connect', switches)
  server.on('clientError', (error, socket) => turns.fail(error, socket))
  return server
}

/** Writes an answer on a connection that Node's server has released; the connection ends with it. */
function responseOn(request: IncomingMessage, Answer: typeof ServerResponse): ServerResponse {
  const response = new Answer(request)
  response.shouldKeepAlive = false
  const { socket } = request
  response.assignSocket(socket)
  socket.on('drain', () => response.emit('drain')).on('timeout', () => response.emit('timeout', socket))
  response.on('finish', () => hangUp(socket))
  return response
}

/** Reads and drops what still comes: unread, it would reset the connection before the client has the answer. */
function hangUp(socket: Socket): void {
  socket.setTimeout(lingerMs, () => socket.destroy())
  socket.end()
  socket.resume()
}
