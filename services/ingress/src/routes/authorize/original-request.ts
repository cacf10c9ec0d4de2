import type { IncomingHttpHeaders } from 'node:http'
import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'
import { isMethod } from '../../http/recorded-method.ts'

/** The request that the client sent to the gateway, before the gateway called Weir. */
export interface OriginalRequest {
  readonly method: string
  /** Path and query, as they were sent. */
  readonly url: string
}

/** The three ways in which gateways name it, in the order in which they are read. */
const headerPairs = [
  ['x-original-method', 'x-original-uri'],
  ['x-original-method', 'x-original-url'],
  ['x-forwarded-method', 'x-forwarded-uri'],
] as const

/**
 * Reads the original request: the headers that gateways set, then the rest of Weir's own request line behind the
 * endpoint's path (`rest`: path and query, empty when there is no more path). Several sources must agree: gateways
 * forward headers of their clients, so that of two that differ one may be the client's, and it is not known which.
 * Headers of an untrusted peer are a problem, which names its `address`.
 */
export function originalRequest(
  asked: { readonly method: string; readonly rest: string; readonly headers: IncomingHttpHeaders },
  isTrusted: () => boolean,
  address: string | undefined,
): OriginalRequest | Problem {
  const { method, rest, headers } = asked
  const claims: (OriginalRequest & { readonly from: string })[] = []
  for (const [methodName, urlName] of headerPairs) {
    const [claimedMethod, claimedUrl] = [headers[methodName], headers[urlName]]
    if (claimedMethod === undefined && claimedUrl === undefined) continue
    if (!isTrusted()) return untrustedProxy(claimedUrl === undefined ? methodName : urlName, address)
    if (claimedUrl === undefined) continue
    if (claimedMethod === undefined) return badRequest(`The gateway sent ${urlName} but not ${methodName}.`)
    claims.push({ from: urlName, method: String(claimedMethod), url: withoutOrigin(String(claimedUrl)) })
  }
  if (rest !== '') claims.push({ from: 'the request line', method, url: rest })
  const [first, ...others] = claims
  if (first === undefined) return badRequest(nothingSaid)
  const other = others.find(({ method, url }) => method !== first.method || url !== first.url)
  if (other !== undefined) {
    return badRequest(
      `${first.from} and ${other.from} name different requests. The gateway must remove the one it does not set.`,
    )
  }
  // Node joins a header that came twice by a comma and a blank, which neither a method nor an address may hold.
  if (!isMethod(first.method)) return badRequest(`${first.from} came with an unknown HTTP method.`)
  if (!/^\/[^\s]*$/.test(first.url)) return badRequest(`${first.from} must contain one path that begins with a slash.`)
  return { method: first.method, url: first.url }
}

const nothingSaid =
  'The gateway did not say what the client asked for: set X-Original-Method and X-Original-URI, or X-Forwarded-Method and X-Forwarded-Uri, or append the path to this one.'

const untrustedProxy = (header: string, address = 'a closed connection'): Problem => {
  const detail = `${header} came from ${address}, which the policy does not list in identity.trustedProxies. If that is your gateway, add it there.`
  return problem('untrusted-proxy', 'Untrusted proxy', 403, detail)
}

/** ingress-nginx writes `X-Original-URL` with scheme and host. */
function withoutOrigin(url: string): string {
  const origin = /^https?:\/\/[^/?#]*/i.exec(url)?.[0]
  if (origin === undefined) return url
  const rest = url.slice(origin.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}
