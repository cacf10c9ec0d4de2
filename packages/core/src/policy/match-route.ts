import { pathToMatch } from '../http/normalize-path.ts'
import { noRouteLimits, type Route } from './policy.ts'

/**
 * What a request that matches no route is treated and recorded as. One template for all of them: records name routes,
 * never raw paths, so that usage by route stays a short list whatever clients ask for.
 */
export const unmatchedRoute: Route = {
  ...{ method: '*', path: '/*', template: '*' },
  ...{ cost: 1, costFrom: undefined, upstream: undefined, limits: noRouteLimits },
}

type Methods = Map<string, Route>

interface Node {
  readonly statics: Map<string, Node>
  param: Node | undefined
  /** Routes that end here, and those that take whatever follows. */
  readonly ends: Methods
  readonly wildcards: Methods
}

/**
 * Finds the route of a request. `path` is normalized already and has no query; `method` is in capitals.
 *
 * The most specific path wins, compared from the left: a written segment before `:name`, `:name` before `*`; for one
 * path a written method before `*`. `*` takes any rest, none included. A slash at the end does not count, and HEAD takes
 * GET's route unless it has its own: to most upstreams each is the same request, and it must not be a cheaper one.
 */
export function createRouteMatcher(routes: readonly Route[]): (method: string, path: string) => Route | undefined {
  const plain = new Map<string, Methods>()
  const root = newNode()
  let patterned = false
  for (const route of routes) {
    const path = withoutEndingSlash(pathToMatch(route.path))
    if (/\/[:*]/.test(path)) {
      insert(root, path, route)
      patterned = true
    } else {
      const methods: Methods = plain.get(path) ?? new Map()
      plain.set(path, methods.set(route.method, route))
    }
  }
  return function matchRoute(method, rawPath) {
    const path = withoutEndingSlash(pathToMatch(rawPath))
    const methods = plain.get(path)
    const route = methods === undefined ? undefined : byMethod(methods, method)
    return route ?? (patterned ? search(root, path, 1, method) : undefined)
  }
}

function insert(root: Node, path: string, route: Route): void {
  let node = root
  for (const segment of path.slice(1).split('/')) {
    if (segment === '*') {
      node.wildcards.set(route.method, route)
      return
    }
    node = segment.startsWith(':') ? paramOf(node) : staticOf(node, segment)
  }
  node.ends.set(route.method, route)
}

/** Visits each node at most once: there is one way to reach it. `from` is where the next segment begins. */
function search(node: Node, path: string, from: number, method: string): Route | undefined {
  if (from > path.length || path.length === 1) {
    return byMethod(node.ends, method) ?? byMethod(node.wildcards, method)
  }
  const slash = path.indexOf('/', from)
  const end = slash === -1 ? path.length : slash
  const next = node.statics.get(path.slice(from, end))
  let route = next === undefined ? undefined : search(next, path, end + 1, method)
  // `:name` stands for something: an empty segment is not it.
  if (route === undefined && node.param !== undefined && end > from) route = search(node.param, path, end + 1, method)
  return route ?? byMethod(node.wildcards, method)
}

function byMethod(methods: Methods, method: string): Route | undefined {
  if (methods.size === 0) return undefined
  return methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined) ?? methods.get('*')
}

const newNode = (): Node => ({ statics: new Map(), param: undefined, ends: new Map(), wildcards: new Map() })

function paramOf(node: Node): Node {
  node.param ??= newNode()
  return node.param
}

function staticOf(node: Node, segment: string): Node {
  const found = node.statics.get(segment) ?? newNode()
  node.statics.set(segment, found)
  return found
}

const withoutEndingSlash = (path: string) => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
