import type { Socket } from 'node:net'

/** Gateways open further connections beyond, and their calls take milliseconds. */
export const callsPerConnectionMax = 100
/** Twice the largest message: bytes of a connection without any message of it that came whole. */
const unreadBytesMax = 4_194_304
/** The same of all connections together: beyond, those with most end first. */
const allUnreadBytesMax = 67_108_864
/** Fewer may be heads, and messages that are on their way; more of them come whole within ten seconds. */
const [smallBytes, slowTicksMax] = [65_536, 100]
/** What pings and probes of health send, which are no messages: forgotten at each look, 1 kB a second. */
const idleBytes = 100
/** In this time a machine beside may send some MB on a connection. */
const tickMs = 100

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
    const slow: { readonly socket: Socket; readonly unread: number }[] = []
    for (const [peer, one] of connections) {
      const { socket } = one
      const unread = socket.bytesRead - one.knownBytes
      one.slowTicks = suspects.has(peer) ? one.slowTicks + 1 : 0
      if (one.slowTicks > 0 && (unread > unreadBytesMax || one.slowTicks >= slowTicksMax)) socket.destroy()
      else if (one.slowTicks > 0) slow.push({ socket, unread })
      else if (unread > smallBytes) suspects.add(peer)
      else one.knownBytes += Math.min(unread, idleBytes)
    }
    let all = slow.reduce((sum, { unread }) => sum + unread, 0)
    for (const { socket, unread } of slow.sort((a, b) => b.unread - a.unread)) {
      if (all <= allUnreadBytesMax) break
      socket.destroy()
      all -= unread
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
