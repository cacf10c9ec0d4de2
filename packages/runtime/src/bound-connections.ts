import type { RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { wholeNumber } from './read-config.ts'

/**
 * Requests of a connection that wait behind the one that is being answered. Browsers and gateways send none ahead;
 * each may have a whole head in memory.
 */
export const waitingMax = 64
/** A connection may be silent for this long while its request is unfinished or its answer unread. */
const silentMsMax = 60_000
/** For a whole request, where a listener has no bound of its own: a policy of 17 MB, at 2 Mbit/s. */
export const requestMsMax = 60_000
/** Of the listeners that clients keep connections to, which a balancer must close before them: Google's after 600 s. */
export const idleTimeoutVariable = wholeNumber({
  name: 'WEIR_IDLE_TIMEOUT_MS',
  about: 'how long an idle connection stays open; set more than the timeout of load balancers',
  fallback: '620000',
  min: 1_000,
  max: 3_600_000,
})
/** How often that is looked at. */
export const checkEveryMs = 5_000

/**
 * Serves the requests of a connection one after the other: one that was sent ahead is served once the answer before it
 * is written, so no answer waits in memory behind another, and Node emits `close` on every answer that is begun. A
 * connection on which more wait than that is ended.
 */
export function inTurn(serve: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, number>()
  return (request, response) => {
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const count = (waiting.get(socket) ?? 0) + 1
    waiting.set(socket, count)
    if (count > waitingMax) socket.destroy()
    else
      response.once('socket', () => {
        waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
        serve(request, response)
      })
  }
}

/** Whether the answer of a connection is still being made, and the client has taken what there is of it. */
function isServing(socket: Socket): boolean {
  // Node's own name for the answer that has the connection; null between two of them.
  const { _httpMessage: response } = socket as Socket & { readonly _httpMessage?: ServerResponse | null }
  return !!response && response.req.complete && !response.writableEnded && socket.writableLength === 0
}

/**
 * Ends connections that are silent while their request is unfinished or their answer unread. Those whose answer takes
 * its time stay, and idle ones for as long as the server's `keepAliveTimeout` says.
 */
export const endSilent = (server: Server, silentMs: number = silentMsMax): Server =>
  server.setTimeout(silentMs, (socket) => {
    if (!isServing(socket)) socket.destroy()
  })
