import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Whether the client of an answer has hung up, as far as anybody has noticed. */
export const isGone = ({ destroyed, req }: ServerResponse): boolean =>
  destroyed || req.socket.destroyed || req.socket.readableEnded

/**
 * Tells when the client of an answer hangs up while it waits, maybe more than once; returns what ends that. The answer alone is not
 * enough: Node tells only the one that is being written of a close, none behind it on the same connection.
 */
export function watchClient(client: ServerResponse, gone: () => void): () => void {
  const { socket } = client.req
  client.once('close', gone).on('timeout', nothing)
  // As many as requests in a row, which Node bounds by the answers that wait.
  socket.setMaxListeners(0).once('close', gone)
  const unread = isRead(socket) ? undefined : socket
  unread?.once('end', gone).on('readable', nothing)
  return () => {
    client.off('close', gone).off('timeout', nothing)
    socket.off('close', gone)
    unread?.off('end', gone).off('readable', nothing)
  }
}

/**
 * Nobody reads a connection that is to switch protocols, and unread its end is never met. To listen for `readable` is to read as much
 * as the stream's buffer holds, and takes nothing out of it.
 */
const isRead = ({ readableFlowing }: Socket) => readableFlowing !== null

const nothing = () => {}
