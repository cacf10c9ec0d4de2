import type { IncomingHttpHeaders } from 'node:http'
import { connectionNamed } from './request-headers.ts'

/** What an upstream says of its own connection, the name of our records, and where we send people. */
const withheld = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'transfer-encoding', 'upgrade'],
  ...['weir-decision', 'weir-challenge'],
])
/** What only Weir speaks. Of limits in every dialect, because beside ours another would be read as ours. */
const isOurs = (name: string) =>
  name.startsWith('x-weir-') || name.startsWith('ratelimit') || name.startsWith('x-ratelimit')

const isWithheld = (name: string) => withheld.has(name) || isOurs(name)

/**
 * The upstream's headers as the client gets them, added to `target` as names and values in turns. What `target` already
 * has of our own stays as it is.
 */
export function addAnswerHeaders(target: string[], headers: IncomingHttpHeaders): void {
  const named = connectionNamed(headers.connection)
  const isChunked = headers['transfer-encoding'] !== undefined
  for (const name in headers) {
    if (isWithheld(name) || named?.has(name)) continue
    if (isChunked && name === 'content-length') continue
    const value = headers[name]
    if (typeof value === 'string') target.push(name, value)
    else for (const one of value ?? []) target.push(name, one)
  }
}

/** Trailers that may follow: none that say how the message is to be read, and none of ours. */
export function answerTrailers(trailers: IncomingHttpHeaders): [string, string][] {
  const pairs: [string, string][] = []
  for (const name in trailers) {
    if (isWithheld(name) || name === 'content-length' || name === 'host') continue
    const value = trailers[name]
    if (typeof value === 'string') pairs.push([name, value])
    else for (const one of value ?? []) pairs.push([name, one])
  }
  return pairs
}
