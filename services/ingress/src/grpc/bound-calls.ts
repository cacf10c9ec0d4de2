import type { Socket } from 'node:net'

/** Gateways open further connections beyond, and their calls take milliseconds. */
export const callsPerConnectionMax = 100
/** Twice the largest message: bytes of a connection without any message of it that came whole. */
const unreadBytesMax = 4_194_304
/** Fewer may be heads, and messages that are on their way; more of them come whole within seconds. */
const [smallBytes, slowTicksMax] = [65_536, 10]
/** What pings and probes of health send, which are no messages: forgotten each second. */
const idleBytes = 1_024
const tickMs = 1_000

interface Connection {
  readonly socket: Socket
  /** Bytes that were read when a message last came whole, or that were forgiven since. */
  knownBytes: number
  slowTicks: number
}

/**
 * Ends connections that send and leave their messages unfinished: those would stay in memory. One timer looks at all
 * connections, by the bytes that came; a call only says that its message came whole.
 */
export function createConnectionBounds() {
  const connections = new Map<string, Connection>()
  const look = () => {
    for (const one of connections.values()) {
      const unread = one.socket.bytesRead - one.knownBytes
      one.slowTicks = unread > smallBytes ? one.slowTicks + 1 : 0
      if (unread > unreadBytesMax || one.slowTicks >= slowTicksMax) one.socket.destroy()
      else one.knownBytes += Math.min(unread, idleBytes)
    }
  }
  const timer = setInterval(look, tickMs).unref()
  return {
    /** Remembers a connection until it ends. */
    add(socket: Socket): void {
      const peer = `${socket.remoteAddress}:${socket.remotePort}`
      connections.set(peer, { socket, knownBytes: socket.bytesRead, slowTicks: 0 })
      socket.once('close', () => connections.delete(peer))
    },
    /** A message of this peer (`address:port`) came whole. */
    complete(peer: string): void {
      const one = connections.get(peer)
      if (one !== undefined) one.knownBytes = one.socket.bytesRead
    },
    close: () => clearInterval(timer),
  }
}

/** See `createConnectionBounds`. */
export type ConnectionBounds = ReturnType<typeof createConnectionBounds>
