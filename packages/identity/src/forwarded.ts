import type { IncomingHttpHeaders } from 'node:http'
import { plainAddress } from '@weir/runtime/address-scope.ts'
import type { AddressSet } from './identity-rules.ts'

/** Proxies in a row that are looked through. More than a few is a loop or a forgery. */
export const hopsMax = 32

/** Reads one hop of a list: its address as `plainAddress` writes it, empty where there is none. */
export type ReadHop = (text: string) => string

/** What the proxies in front say about where a request came from; undefined when they say nothing. */
export function forwardedBy(
  headers: IncomingHttpHeaders,
): { readonly list: string; readonly readHop: ReadHop } | undefined {
  const { 'x-forwarded-for': addresses, forwarded } = headers
  // Node joins repeated ones in order, so that the last hop is always at the end.
  if (typeof addresses === 'string') return { list: addresses, readHop: readAddress }
  return forwarded === undefined ? undefined : { list: forwarded, readHop: readForwardedElement }
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`; empty for anything else. */
function readAddress(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1]
  if (bracketed !== undefined) return plainAddress(bracketed)
  const withPort = /^([\d.]+):\d{1,5}$/.exec(text)?.[1]
  return plainAddress(withPort ?? text)
}

const readForwardedElement = (element: string): string => readAddress(readParameters(element)?.for ?? '')

/** The parameters of an element of `Forwarded` (RFC 7239) by name; undefined if one is malformed or twice. */
function readParameters(element: string): Partial<Record<string, string>> | undefined {
  const found: Record<string, string> = {}
  for (const pair of element.split(';')) {
    const [, name, quoted, token] = /^\s*([\w-]+)=(?:"([^"]*)"|([^"\s]*))\s*$/.exec(pair) ?? []
    const lower = name?.toLowerCase()
    if (lower === undefined || lower in found) return undefined
    found[lower] = quoted ?? token ?? ''
  }
  return found
}

/** A request as its client made it. */
export interface OriginalRequest {
  /** Addresses from the client on, without the peer of the connection; empty texts for those that cannot be read. */
  readonly hops: readonly string[]
  /** With its port where that is not the scheme's; empty where nothing says it. */
  readonly host: string
  /** `http` or `https`, or what some proxies say of WebSockets, `ws` or `wss`; empty where nothing says it. */
  readonly proto: string
}

/**
 * What trusted proxies say of the original request: by `X-Forwarded-*`, or by `Forwarded` where it came alone. Of
 * `Forwarded` it is the element about the last hop that is no proxy: a client can have written what is further left.
 * The addresses are those that callers are counted by.
 */
export function originalRequest(headers: IncomingHttpHeaders, proxies: AddressSet): OriginalRequest {
  const first = (name: string) => `${headers[name] ?? ''}`.split(',', 1)[0]?.trim() ?? ''
  const port = first('x-forwarded-port')
  const said = { host: first('x-forwarded-host'), proto: first('x-forwarded-proto') }
  const found = forwardedBy(headers)
  const elements = found?.list.split(',').slice(-hopsMax) ?? []
  const hops = elements.map((one) => found?.readHop(one.trim()) ?? '')
  if (headers['x-forwarded-for'] !== undefined || said.host !== '' || said.proto !== '') {
    return { hops, ...checked(said, port) }
  }
  const at = Math.max(
    0,
    hops.findLastIndex((hop) => !proxies.has(hop)),
  )
  const { host = '', proto = '' } = readParameters(elements[at] ?? '') ?? {}
  return { hops, ...checked({ host, proto }, '') }
}

function checked({ host, proto }: Pick<OriginalRequest, 'host' | 'proto'>, port: string) {
  const scheme = /^(?:https?|wss?)$/i.test(proto) ? proto.toLowerCase() : ''
  const isPortOfScheme = port === { http: '80', ws: '80', https: '443', wss: '443' }[scheme]
  const more = /^\d{1,5}$/.test(port) && !isPortOfScheme && !/:\d+$/.test(host) ? `:${port}` : ''
  return { proto: scheme, host: /^[\w.~%:[\]-]+$/.test(host) ? `${host}${more}` : '' }
}
