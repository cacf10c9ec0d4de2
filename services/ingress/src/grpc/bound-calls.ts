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
  /** Bytes that were read when a message was last seen to come whole, or that were forgiven since. */
  knownBytes: number
  /** Looks for which none was seen. */
  slowTicks: number
}

/**
 * Ends connections that send and leave their messages unfinished: those would stay in memory. One timer looks at all
 * connections, by the bytes that came. Those with many are suspects until a message of theirs comes whole; only while
 * there are suspects a call says whose it is, which would cost each call a tenth of its time.
 */
export function createConnectionBounds() {
  const connections = new Map<string, Connection>()
  const suspects = new Set<string>()
  const look = () => {
    for (const [peer, one] of connections) {
      const unread = one.socket.bytesRead - one.knownBytes
      one.slowTicks = suspects.has(peer) ? one.slowTicks + 1 : 0
      if (one.slowTicks > 0 && (unread > unreadBytesMax || one.slowTicks >= slowTicksMax)) one.socket.destroy()
      else if (unread > smallBytes) suspects.add(peer)
      else one.knownBytes += Math.min(unread, idleBytes)
    }
  }
  const timer = setInterval(look, tickMs).unref()
  return {
    /** Remembers a connection until it ends. */
    add(socket: Socket): void {
      const peer = `${socket.remoteAddress}:${socket.remotePort}`
      connections.set(peer, { socket, knownBytes: socket.bytesRead, slowTicks: 0 })
      socket.once('close', () => {
        connections.delete(peer)
        suspects.delete(peer)
      })
    },
    /** The message of a call came whole. */
    complete(call: { getPeer(): string }): void {
      if (suspects.size === 0) return
      const peer = call.getPeer()
      const one = connections.get(peer)
      if (one === undefined) return
      suspects.delete(peer)
      one.knownBytes = one.socket.bytesRead
    },
    close: () => clearInterval(timer),
  }
}
