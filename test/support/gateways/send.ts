import { type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Sent {
  readonly method?: string
  /** Sent as it is: no dot segment is resolved. */
  readonly path?: string
  /** By name, or names and values in turns. */
  readonly headers?: Readonly<Record<string, string>> | readonly string[]
  readonly body?: Buffer
  /** The address it comes from, one of 127.0.0.0/8. */
  readonly from?: string
}

/** An answer that takes longer is none. */
const deadlineMs = 20_000

/** Clients come from an address that is no proxy's; all of 127.0.0.0/8 is this machine. */
const clientAddress = '127.0.0.5'

/** One request over a connection of its own, from `clientAddress` if it does not say another. */
export function send(
  origin: string,
  { method = 'GET', path = '/', headers = {}, body, from = clientAddress }: Sent,
): Promise<Answer> {
  const isChunked = 'transfer-encoding' in headers
  const length = body === undefined || isChunked ? {} : { 'content-length': String(body.length) }
  return new Promise((resolve, reject) => {
    const asked = request(
      origin,
      {
        method,
        path,
        agent: false,
        localAddress: from,
        maxHeaderSize: 65_536,
        headers: Array.isArray(headers)
          ? ['host', new URL(origin).host, ...headers, ...Object.entries(length).flat()]
          : { ...headers, ...length },
        signal: AbortSignal.timeout(deadlineMs),
      },
      (response) => {
        text(response).then((said) => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: said })
        }, reject)
      },
    )
    asked.once('error', reject)
    asked.end(body)
  })
}
