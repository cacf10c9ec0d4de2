import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerToNoRequest } from '@weir/runtime/problem.ts'
import { headerBytesMax } from './read-target.ts'

/** As Node's server reports it; `HPE_…` is the parser's. */
type ClientError = Error & { readonly code?: string }

/** The answer that is being made on each connection, and the connections on which no request is read any more. */
export class ConnectionTurns {
  readonly #answering = new WeakMap<Duplex, ServerResponse>()
  /** Here a head was refused: where the next one would begin is unknown. */
  readonly #lost = new WeakSet<Duplex>()
  /** Here bytes that are no request came behind requests that are being answered. */
  readonly #ending = new WeakSet<Duplex>()

  /** Begins the turn of a request; false if it must not be served. */
  begin({ socket, complete }: IncomingMessage, response: ServerResponse): boolean {
    // The body of a request that broke off before its turn never comes.
    if (this.#lost.has(socket) || (this.#ending.has(socket) && !complete)) return false
    this.#answering.set(socket, response)
    return true
  }

  /** No request behind this one is served. */
  lose(socket: Duplex): void {
    this.#lost.add(socket)
  }

  /** Whether an answer still waits for its turn, or has the connection. */
  isAnswering(socket: Duplex): boolean {
    const response = this.#answering.get(socket)
    return response !== undefined && (response.socket !== null || !response.writableFinished)
  }

  /** Answers what is no request, where that is possible, and ends the connection. */
  fail(error: ClientError, socket: Duplex): void {
    const response = this.#answering.get(socket)
    // At its end a client mostly hung up.
    const isHeads = /^HPE_(?!INVALID_EOF)|^ERR_HTTP_REQUEST_TIMEOUT$/.test(error.code ?? '')
    if (isHeads && response?.req.complete === true && this.isAnswering(socket)) {
      this.#endBehind(response, error, socket)
      return
    }
    const hasBegun = this.#lost.has(socket) || (response?.headersSent === true && !response.writableFinished)
    if (socket.writable && !hasBegun && error.code !== 'ECONNRESET')
      socket.write(answerToNoRequest(error, headerBytesMax))
    socket.destroy()
  }

  /** The whole requests before it are answered first: they were decided, and the upstream has served them. */
  #endBehind(response: ServerResponse, error: ClientError, socket: Duplex): void {
    if (this.#ending.has(socket)) return
    this.#ending.add(socket)
    response.once('finish', () => {
      this.#ending.delete(socket)
      const next = this.#answering.get(socket)
      if (next !== undefined && next !== response) this.#endBehind(next, error, socket)
      else if (socket.writable) socket.end(answerToNoRequest(error, headerBytesMax), () => socket.destroy())
    })
  }
}
