import type { IncomingHttpHeaders } from 'node:http'
import { connectionNamed } from './request-headers.ts'

/** What an upstream says of its own connection, and what only Weir speaks: neither reaches the client. */
const withheld = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'transfer-encoding', 'upgrade'],
  ...['ratelimit', 'ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'weir-decision'],
])

/**
 * The upstream's headers as the client gets them, added to `target` as names and values in turns. What `target` already
 * has of our own stays as it is.
 */
export function addAnswerHeaders(target: string[], headers: IncomingHttpHeaders): void {
  const named = connectionNamed(headers.connection)
  const isChunked = headers['transfer-encoding'] !== undefined
  const own = target.length
  for (const name in headers) {
    if (withheld.has(name) || named?.has(name) || name.startsWith('x-weir-')) continue
    // The dialect of our own rate-limit headers may be the upstream's too.
    if (name.startsWith('x-ratelimit-') && target.lastIndexOf(name, own) !== -1) continue
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
    if (withheld.has(name) || name.startsWith('x-weir-') || name === 'content-length' || name === 'host') continue
    const value = trailers[name]
    if (typeof value === 'string') pairs.push([name, value])
    else for (const one of value ?? []) pairs.push([name, one])
  }
  return pairs
}
