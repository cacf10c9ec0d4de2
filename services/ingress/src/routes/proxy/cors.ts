import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Cors } from '@weir/policy/policy.ts'
import { challengeHeader, isProblem } from '../../http/decision-reply.ts'
import type { PolicyView } from '../../policy-view.ts'
import { startHeaders } from './answers.ts'
import { matchTarget } from './match-target.ts'
import type { IncomingRequest } from './proxied-request.ts'

/** How long a browser need not ask again. An edit of the policy should not wait for hours. */
const maxAgeSeconds = 600
const exposed = [
  'RateLimit',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
  'Weir-Decision',
  challengeHeader,
].join(', ')

/**
 * The headers by which a page may read the answer of its upstream, names and values in turns, by the Fetch standard;
 * undefined where that upstream speaks for itself. A preflight is answered: it has no credential to decide by.
 */
export function answerCors(view: PolicyView, incoming: IncomingRequest): 'answered' | readonly string[] | undefined {
  const { request, response, target } = incoming
  const { headers, method } = request
  const { origin, 'access-control-request-method': askedMethod } = headers
  if (origin === undefined) return undefined
  const wanted = method === 'OPTIONS' ? askedMethod : undefined
  const matched = matchTarget(view, wanted ?? method ?? '', headers, target)
  const route = isProblem(matched) ? unmatchedRoute : matched.route
  const cors = view.resolveUpstream(headers.host ?? '', route)?.cors
  if (cors === undefined) return undefined
  const allowed = allowedBy(cors, origin)
  if (wanted === undefined)
    return [...allowed, ...(allowed.length > 0 ? ['access-control-expose-headers', exposed] : []), 'vary', 'Origin']
  const askedHeaders = headers['access-control-request-headers']
  response.writeHead(204, [
    ...startHeaders(incoming, true),
    ...allowed,
    'access-control-allow-methods',
    wanted,
    'access-control-max-age',
    `${maxAgeSeconds}`,
    ...(typeof askedHeaders === 'string' ? ['access-control-allow-headers', askedHeaders] : []),
    'vary',
    'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
  ])
  response.end()
  return 'answered'
}

/** None for pages of other origins, whose browser refuses to show them the answer then. */
function allowedBy({ origins, credentials }: Cors, origin: string): string[] {
  if (origins.includes('*')) return ['access-control-allow-origin', '*']
  if (!origins.includes(origin)) return []
  return ['access-control-allow-origin', origin, ...(credentials ? ['access-control-allow-credentials', 'true'] : [])]
}
