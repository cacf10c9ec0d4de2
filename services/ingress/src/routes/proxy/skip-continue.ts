import { subscribe } from 'node:diagnostics_channel'
import { isIP, type Socket } from 'node:net'
import { buildConnector } from 'undici'

const begin = Buffer.from('HTTP/1.1 100')
const headBytesMax = 4_096

/** Connections on which a request went out, and nothing of its answer was read yet. */
const awaiting = new WeakSet<Socket>()
const own = new WeakSet<Socket>()
let isSubscribed = false

/**
 * A connector whose connections skip every 100 before an answer. Some upstreams send it unasked, and undici 8.12 takes
 * it for a broken answer. Weir has answered the client's `Expect` itself by then.
 */
export function connectorSkippingContinue(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options)
  if (!isSubscribed) subscribe('undici:client:sendHeaders', requestSent)
  isSubscribed = true
  return (target, done) => {
    // TLS knows no address as a name (RFC 6066); the certificate is checked for it nevertheless.
    const { servername = '', ...others } = target
    connect(isIP(servername) === 0 ? target : others, (...result) => {
      const [, socket] = result
      // undici leaves it out if there is an error, whatever its type says.
      if (socket) skipContinue(socket)
      done(...result)
    })
  }
}

function requestSent(message: unknown): void {
  const { socket } = message as { readonly socket: Socket }
  if (own.has(socket)) awaiting.add(socket)
}

/** undici takes what came by `read`. */
function skipContinue(socket: Socket): void {
  own.add(socket)
  const read = socket.read.bind(socket)
  let held: Buffer = Buffer.alloc(0)
  socket.read = (size?: number): Buffer | null => {
    const chunk: Buffer | null = read(size)
    if (chunk === null || !awaiting.has(socket)) return chunk
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    while (held.subarray(0, begin.length).equals(begin)) {
      const end = held.indexOf('\r\n\r\n')
      if (end === -1 && held.length < headBytesMax) return null
      if (end === -1) break
      held = held.subarray(end + 4)
    }
    if (begin.subarray(0, held.length).equals(held)) return null
    awaiting.delete(socket)
    const rest = held
    held = Buffer.alloc(0)
    return rest
  }
}
