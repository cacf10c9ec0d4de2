import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { isTrustedProxy } from '@weir/identity/caller-address.ts'
import { type OriginalRequest, originalRequest } from '@weir/identity/forwarded.ts'
import { type AddressSet, identityRules } from '@weir/identity/identity-rules.ts'
import type { Upstream } from '@weir/policy/policy.ts'
import { plainAddress } from '@weir/runtime/address-scope.ts'
import {
  clientAddressHeaders,
  connectionNamed,
  forwardedPrefix,
  weirPrefix,
  withHyphens,
} from '../../http/client-headers.ts'
import type { ProxiedRequest } from './proxied-request.ts'

/** What a supplier must not learn of a customer. */
const fromCustomer: ReadonlySet<string> = new Set(['via', 'authorization', 'cookie'])
const fromProxiesOnly: ReadonlySet<string> = new Set(clientAddressHeaders)

/**
 * Builds the headers for the upstream: the client's without those that are for Weir or for one connection, and then
 * Weir's own, last, so that nothing the client names can remove them. Returns names and values in turns.
 */
export function headersForUpstream(proxied: ProxiedRequest): string[] {
  const { request, view, hopByHop, decisionId, degradedBy, metered, trace, upstream, setHeaders } = proxied
  const isAnonymous = upstream.isAnonymous === true
  const { keyHeaders } = view.policy.identity
  const { subject, keyId, carriedIn } = proxied.caller
  const { rawHeaders, headers } = request
  const { dropped, isTwin } = view.readHeaders
  const credential = carriedIn?.kind === 'header' ? withHyphens(carriedIn.name) : undefined
  const fromProxy = isTrustedProxy(request.socket, view.policy.identity)
  const proxies = fromProxy ? identityRules(view.policy.identity).proxies : undefined
  const forwarded: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const lower = name.toLowerCase()
    const known = withHyphens(lower)
    if (dropped.has(known) || known === credential || known.startsWith(weirPrefix) || hopByHop?.has(lower)) continue
    if ((isAnonymous || !fromProxy) && (known.startsWith(forwardedPrefix) || fromProxiesOnly.has(known))) continue
    if (isAnonymous && (fromCustomer.has(known) || keyHeaders.some((key) => withHyphens(key) === known))) continue
    if (isTwin(lower, known) || setHeaders?.names.has(known)) continue
    if (trace !== undefined && (lower === 'traceparent' || lower === 'tracestate')) continue
    if (metered !== undefined && known === 'accept-encoding') continue
    // It may have been asked for its usage, and is as long as it is sent.
    if (proxied.readBody !== undefined && known === 'content-length') continue
    forwarded.push(name, rawHeaders[at + 1] ?? '')
  }
  if (/(?:^|,)\s*trailers\s*(?:,|$)/i.test(textOf(headers.te))) forwarded.push('te', 'trailers')
  if (upstream.preserveHost && headers.host !== undefined) forwarded.push('host', headers.host)
  // What it used is read from its answer.
  if (metered !== undefined) forwarded.push('accept-encoding', 'identity')
  if (!isAnonymous) {
    addForwarding(forwarded, request, proxies)
    forwarded.push('x-weir-subject', subject.id, 'x-weir-plan', subject.plan.name)
    // A journal that admits may have had no space for the record.
    if (decisionId !== '') forwarded.push('weir-decision', decisionId)
    if (keyId !== '') forwarded.push('x-weir-key-id', keyId)
    if (degradedBy !== '') forwarded.push('weir-degraded', degradedBy)
  }
  if (trace !== undefined) forwarded.push('traceparent', trace.upstreamTraceparent)
  if (trace !== undefined && trace.tracestate !== '') forwarded.push('tracestate', trace.tracestate)
  if (setHeaders !== undefined) forwarded.push(...setHeaders.pairs)
  return forwarded
}

/**
 * Adds where the request came from, twice and the same: `Forwarded` by what is in `X-Forwarded-*`, and these by
 * `Forwarded` where it came alone. Earlier hops are believed of a trusted proxy only.
 */
function addForwarding(forwarded: string[], { headers, socket }: IncomingMessage, proxies: AddressSet | undefined) {
  const peer = plainAddress(socket.remoteAddress ?? '')
  const { host = '' } = headers
  const proto = (socket as TLSSocket).encrypted ? 'https' : 'http'
  const said = proxies === undefined ? nothingSaid : originalRequest(headers, proxies)
  const list = proxies === undefined ? '' : (headers['x-forwarded-for'] ?? said.hops.map(orUnknown).join(', '))
  forwarded.push('x-forwarded-for', list === '' ? orUnknown(peer) : `${list}, ${orUnknown(peer)}`)
  forwarded.push('x-forwarded-host', said.host || host, 'x-forwarded-proto', said.proto || proto)
  const { hops } = said
  const isSaid = hops.length > 0 || said.host !== '' || said.proto !== ''
  const original = [nodeOf(hops[0] ?? ''), ...parameter('host', said.host), ...parameter('proto', said.proto)].join(';')
  const own = [nodeOf(peer), ...parameter('host', host), `proto=${proto}`].join(';')
  const all = isSaid ? [original, ...hops.slice(1).map(nodeOf), own] : [own]
  forwarded.push('forwarded', all.join(', '), 'via', '1.1 weir')
}

const nothingSaid: OriginalRequest = { hops: [], host: '', proto: '' }
const orUnknown = (address: string): string => address || 'unknown'
const nodeOf = (address: string): string => `for=${address.includes(':') ? `"[${address}]"` : orUnknown(address)}`
const parameter = (name: string, value: string): string[] =>
  value === '' ? [] : [`${name}=${name === 'host' ? `"${value.replaceAll(/["\\]/g, '')}"` : value}`]

const textOf = (value: string | string[] | undefined): string => (typeof value === 'string' ? value : '')

/** What an upstream says of its own connection, the name of our records, and where we send people. */
const withheld = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'transfer-encoding',
  'upgrade',
  'weir-decision',
  'weir-challenge',
])
/** Headers that only Weir sets. Those of limits in every dialect, because the upstream's would be read as Weir's. */
const isWeirs = (name: string) =>
  name.startsWith('x-weir-') || name.startsWith('ratelimit') || name.startsWith('x-ratelimit')

const isWithheld = (name: string) => withheld.has(name) || isWeirs(name)

/**
 * Adds the upstream's headers as the client gets them to `target`, as names and values in turns. An address below the
 * upstream's own origin loses it: the client would go past Weir, with its key.
 */
export function addAnswerHeaders(target: string[], headers: IncomingHttpHeaders, { url, cors }: Upstream): void {
  const named = connectionNamed(headers.connection)
  const isChunked = headers['transfer-encoding'] !== undefined
  for (const name in headers) {
    if (isWithheld(name) || named?.has(name)) continue
    if (isChunked && name === 'content-length') continue
    if (cors !== undefined && name.startsWith('access-control-')) continue
    const value = headers[name]
    const isAddress = addresses.has(name)
    if (typeof value === 'string') target.push(name, isAddress ? withoutOrigin(value, url) : value)
    else for (const one of value ?? []) target.push(name, isAddress ? withoutOrigin(one, url) : one)
  }
}

const addresses: ReadonlySet<string> = new Set(['location', 'content-location'])

/** A path that begins with two slashes would name a host, and keeps its meaning behind a dot (RFC 3986 section 4.2). */
function withoutOrigin(address: string, origin: string): string {
  if (!/^https?:/i.test(address) || !URL.canParse(address)) return address
  const url = new URL(address)
  if (url.origin !== origin) return address
  return `${url.pathname.startsWith('//') ? '/.' : ''}${url.pathname}${url.search}${url.hash}`
}

/** Status line and headers, names and values in turns, as text that lacks only the empty line. */
export function headText(status: number, headers: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`
  return text
}

/** Trailers that are passed on: none that say how the message is to be read, and none of Weir's. */
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
