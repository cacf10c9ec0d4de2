import type { IncomingHttpHeaders } from 'node:http'
import { isMethod } from '../../http/recorded-method.ts'

/** The request that the client sent to the gateway, before the gateway called Weir. */
export type OriginalRequest =
  | {
      readonly kind: 'request'
      readonly method: string /** Path and query, as they were sent. */
      readonly url: string
    }
  /** This header names the original request, but comes from an untrusted peer. */
  | { readonly kind: 'untrusted'; readonly header: string }
  | { readonly kind: 'unclear'; readonly detail: string }

/** The three ways in which gateways name it, in the order in which they are read. */
const headerPairs = [
  ['x-original-method', 'x-original-uri'],
  ['x-original-method', 'x-original-url'],
  ['x-forwarded-method', 'x-forwarded-uri'],
] as const

interface Claim {
  readonly from: string
  readonly method: string
  readonly url: string
}

const unclear = (detail: string): OriginalRequest => ({ kind: 'unclear', detail })

/**
 * Reads the original request: the headers that gateways set, then the rest of Weir's own request line behind the
 * endpoint's path (`rest`: path and query, empty when there is no more path). Several sources must agree: gateways
 * forward headers of their clients, so that of two that differ one may be the client's, and it is not known which.
 */
export function originalRequest(
  asked: { readonly method: string; readonly rest: string; readonly headers: IncomingHttpHeaders },
  isTrusted: () => boolean,
): OriginalRequest {
  const { method, rest, headers } = asked
  const claims: Claim[] = []
  for (const [methodName, urlName] of headerPairs) {
    const [claimedMethod, claimedUrl] = [headers[methodName], headers[urlName]]
    if (claimedMethod === undefined && claimedUrl === undefined) continue
    if (!isTrusted()) return { kind: 'untrusted', header: claimedUrl === undefined ? methodName : urlName }
    if (claimedUrl === undefined) continue
    if (claimedMethod === undefined) return unclear(`The gateway sent ${urlName}, but not ${methodName}.`)
    claims.push({ from: urlName, method: String(claimedMethod), url: withoutOrigin(String(claimedUrl)) })
  }
  if (rest !== '') claims.push({ from: 'the request line', method, url: rest })
  const [first, ...others] = claims
  if (first === undefined) return unclear(nothingSaid)
  const other = others.find(({ method, url }) => method !== first.method || url !== first.url)
  if (other !== undefined) {
    return unclear(
      `${first.from} and ${other.from} name different requests. The gateway must remove the one it does not set.`,
    )
  }
  // Node joins a header that came twice by a comma and a blank, which neither a method nor an address may hold.
  if (!isMethod(first.method)) return unclear(`${first.from} came with a method that HTTP does not have.`)
  if (!/^\/[^\s]*$/.test(first.url)) return unclear(`${first.from} must hold one path that begins with a slash.`)
  return { kind: 'request', method: first.method, url: first.url }
}

const nothingSaid =
  'The gateway did not say what the client asked for: set X-Original-Method and X-Original-URI, or X-Forwarded-Method and X-Forwarded-Uri, or append the path to this one.'

/** ingress-nginx writes `X-Original-URL` with scheme and host. */
function withoutOrigin(url: string): string {
  const origin = /^https?:\/\/[^/?#]*/i.exec(url)?.[0]
  if (origin === undefined) return url
  const rest = url.slice(origin.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}
