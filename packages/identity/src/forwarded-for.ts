import type { IncomingHttpHeaders } from 'node:http'
import { plainAddress } from '@weir/runtime/address-scope.ts'
import type { AddressSet } from './identity-rules.ts'

/** Proxies in a row that are looked through. More than a few is a loop or a forgery. */
const hopsMax = 32

/** What the proxies in front say about where a request came from; undefined when they say nothing. */
export function forwardedBy(
  headers: IncomingHttpHeaders,
): { readonly list: string; readonly readHop: ReadHop } | undefined {
  const { 'x-forwarded-for': addresses, forwarded } = headers
  // Node joins repeated ones in order, so that the last hop is always at the end.
  if (typeof addresses === 'string') return { list: addresses, readHop: readAddress }
  return forwarded === undefined ? undefined : { list: forwarded, readHop: readForwardedElement }
}

type ReadHop = (text: string) => string

/**
 * The caller behind trusted proxies: the rightmost hop that is none of them. Each proxy appends the address that it
 * talked to, and what is further left any client can have written. A hop that cannot be read ends the walk at the last
 * one that could; so does the end of the list.
 */
export function rightmostUntrusted(peer: string, list: string, readHop: ReadHop, proxies: AddressSet): string {
  let address = peer
  let end = list.length
  for (let hops = 0; hops < hopsMax; hops += 1) {
    const comma = end === 0 ? -1 : list.lastIndexOf(',', end - 1)
    const hop = readHop(list.slice(comma + 1, end).trim())
    if (hop === '') return address
    address = hop
    if (comma === -1 || !proxies.has(hop)) return address
    end = comma
  }
  return address
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`; empty for anything else. */
function readAddress(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1]
  if (bracketed !== undefined) return plainAddress(bracketed)
  const withPort = /^([\d.]+):\d{1,5}$/.exec(text)?.[1]
  return plainAddress(withPort ?? text)
}

/**
 * One element of `Forwarded` (RFC 7239): the address of its `for`; empty without one, with two, and where it is
 * malformed.
 */
function readForwardedElement(element: string): string {
  let found = ''
  for (const pair of element.split(';')) {
    const [, name, quoted, token] = /^\s*([\w-]+)=(?:"([^"]*)"|([^"\s]*))\s*$/.exec(pair) ?? []
    if (name === undefined) return ''
    if (name.toLowerCase() !== 'for') continue
    if (found !== '') return ''
    found = quoted ?? token ?? ''
  }
  return readAddress(found)
}
