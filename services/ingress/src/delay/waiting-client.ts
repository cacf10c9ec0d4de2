import type { ServerResponse } from 'node:http'

/** Whether the client of an answer has hung up, as far as anybody has noticed. */
export const isGone = ({ destroyed, req }: ServerResponse): boolean =>
  destroyed || req.socket.destroyed || req.socket.readableEnded

/**
 * Tells when the client of an answer hangs up while it waits, maybe more than once; returns what ends that. The answer alone is not
 * enough: Node tells only the one that is being written of a close, none behind it on the same connection. Where another protocol was
 * asked for nobody takes what comes, and the close waits for that: the end is met as soon as all before it was taken, or nothing came.
 */
export function watchClient(client: ServerResponse, gone: () => void): () => void {
  const { socket } = client.req
  client.once('close', gone).on('timeout', nothing)
  // As many as requests in a row, which Node bounds by the answers that wait.
  socket.setMaxListeners(0).once('close', gone).once('end', gone)
  return () => {
    client.off('close', gone).off('timeout', nothing)
    socket.off('close', gone).off('end', gone)
  }
}

const nothing = () => {}
