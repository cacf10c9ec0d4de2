import type { ServerResponse } from 'node:http'

/** Whether the client of an answer has hung up, as far as the process has noticed. */
export const isGone = ({ destroyed, req }: ServerResponse): boolean =>
  destroyed || req.socket.destroyed || req.socket.readableEnded

/**
 * Calls `gone` when the client of an answer hangs up while it waits, maybe more than once; returns what ends that. The
 * answer alone is not enough: Node reports a close only to the answer that is being written, to none behind it on the
 * same connection. Where another protocol was asked for, nothing reads what arrives, and the close waits behind it:
 * `end` comes as soon as all before it was read, or nothing had come.
 */
export function watchClient(client: ServerResponse, gone: () => void): () => void {
  const { socket } = client.req
  client.once('close', gone).on('timeout', nothing)
  // There are as many listeners as requests in a row, which Node bounds by the answers that wait.
  socket.setMaxListeners(0).once('close', gone).once('end', gone)
  return () => {
    client.off('close', gone).off('timeout', nothing)
    socket.off('close', gone).off('end', gone)
  }
}

const nothing = () => {}
