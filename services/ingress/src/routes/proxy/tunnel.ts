import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { addAnswerHeaders, headText } from './proxied-headers.ts'
import type { ProxiedRequest, ProxyOutcome } from './proxied-request.ts'

/** WebSockets are kept alive by pings, which servers send every 20 to 60 s; several may be missed. */
const idleMsMax = 300_000
/** A client that has ended its side mostly hung up; an upstream that does not notice would keep the slot. */
const idleMsAfterEnd = 5_000

/**
 * The protocol that a request asks for; undefined when it is to be served as plain HTTP. Only `websocket` is joined:
 * under most other names (`h2c`, its drafts, `spdy/3`, `TLS/1.2`) requests would reach the upstream that were not
 * decided. Any other `Upgrade` is ignored, as RFC 9110 allows, and that of another method than GET (RFC 6455 section
 * 4.1).
 */
export function protocolAsked({ headers, httpVersionMinor, method }: IncomingMessage): string | undefined {
  // Proxies of HTTP/1.0 in front would not know of the switch, and take what comes for another answer.
  if (httpVersionMinor === 0 || method !== 'GET') return undefined
  const asked = headers.upgrade?.trim() ?? ''
  return asked.toLowerCase() === 'websocket' ? asked : undefined
}

/**
 * Answers that protocols are switched, and joins both connections: the bytes of one go to the other, at the speed of
 * the slower. When either ends, its last bytes are delivered and the other is closed; when one breaks or both
 * are silent for minutes, both are closed. Then `ended` is called. Returns what closes it immediately.
 */
export function openTunnel(
  { request, ownHeaders, upstream }: ProxiedRequest,
  protocol: string,
  answer: { readonly headers: IncomingHttpHeaders; readonly socket: Duplex },
  ended: (bytes: Pick<ProxyOutcome, 'bytesIn' | 'bytesOut'>) => void,
): () => void {
  const client: Socket = request.socket
  const { socket, headers } = answer
  const all = [...ownHeaders]
  addAnswerHeaders(all, headers, upstream)
  all.push('connection', 'Upgrade', 'upgrade', headers.upgrade ?? protocol)
  client.write(`${headText(101, all)}\r\n`, 'latin1')

  const [readBefore, writtenBefore] = [client.bytesRead, client.bytesWritten]
  let openSides = 2
  const close = () => {
    client.destroy()
    socket.destroy()
  }
  const join = (side: Duplex, other: Duplex) => {
    side.on('error', close).on('close', () => {
      openSides -= 1
      if (openSides === 0) {
        ended({ bytesIn: client.bytesRead - readBefore, bytesOut: client.bytesWritten - writtenBefore })
      } else if (other.writableFinished) {
        other.destroy()
      } else {
        other.end(() => other.destroy())
      }
    })
    side.pipe(other)
  }
  // A client that ended its side before the upstream answered sends nothing more.
  client.setTimeout(client.readableEnded ? idleMsAfterEnd : idleMsMax, close)
  client.on('end', () => client.setTimeout(idleMsAfterEnd))
  join(client, socket)
  join(socket, client)
  return close
}
