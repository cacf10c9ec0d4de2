import type { IncomingHttpHeaders } from 'node:http'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Target } from './read-target.ts'

/**
 * Finds the route of a request; a problem where readers of its path could find another one. By `matchedPath` the route
 * was found, and its parameters are read; the upstream gets `path`.
 */
export function matchTarget(view: PolicyView, method: string, headers: IncomingHttpHeaders, target: Target) {
  const { marked, path } = target
  if (marked !== undefined) {
    const found = marked.readings.map((reading) => view.matchRoute(method, reading))
    const at = Math.max(
      0,
      found.findIndex((route) => route !== undefined),
    )
    const route = found[at] ?? unmatchedRoute
    const { keepInPath = [] } = view.resolveUpstream(headers.host ?? '', route) ?? {}
    if (marked.marks.every((mark) => keepInPath.includes(mark))) {
      const isOne = found.every((other) => other === undefined || other === route)
      return isOne ? { route, matchedPath: marked.readings[at] ?? '', path: marked.path } : severalRoutes
    }
    if (marked.refusal !== undefined) return marked.refusal
  }
  const route = view.matchRoute(method, path)
  if (target.readings !== undefined) {
    const isRoute = (reading: string) => view.matchRoute(method, reading) !== undefined
    if (route !== undefined || target.readings.some(isRoute)) return oddPathOfRoute
  }
  return { route: route ?? unmatchedRoute, matchedPath: path, path }
}

const severalRoutes = badRequest(
  'The path has "%2F", ";" or "//" and could match different routes, depending on how it is read.',
)
const oddPathOfRoute = badRequest(
  'The path has an escaped control character or invalid UTF-8; servers that drop these would match a route of the policy.',
)
