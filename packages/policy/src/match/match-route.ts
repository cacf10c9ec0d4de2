import { pathToMatch } from '@weir/core/http/normalize-path.ts'
import { noRouteLimits, type Route } from '../policy.ts'

/**
 * What a request that matches no route is treated and recorded as. One template for all of them: records name routes,
 * never raw paths, so that usage by route stays a short list whatever clients ask for.
 */
export const unmatchedRoute: Route = {
  method: '*',
  path: '/*',
  template: '*',
  cost: 1,
  costFrom: undefined,
  upstream: undefined,
  limits: noRouteLimits,
}

/** Returns the index of a request's route in a list. */
export type RouteFinder = (method: string, path: string) => number | undefined

/** The index of each method's route. */
type Methods = Map<string, number>

/** Most of ten thousand nodes have one of these: maps are made when something comes into them. */
interface Node {
  statics: Map<string, Node> | undefined
  param: Node | undefined
  /** Below `:name:verb`, by the verb. */
  verbs: Map<string, Node> | undefined
  /** Routes that end here, and those that take whatever follows. */
  ends: Methods | undefined
  wildcards: Methods | undefined
}

/**
 * Finds the route of a request. `path` is normalized already and has no query; `method` is in capitals.
 *
 * The most specific path wins, compared from the left: a written segment before `:name:verb`, that before `:name`,
 * `:name` before `*`; for one path a written method before `*`. `*` takes any rest, none included. A slash at the end
 * does not count, and HEAD takes GET's route unless it has its own: to most upstreams each is the same request, and it
 * must not be a cheaper one.
 */
export function createRouteMatcher(
  routes: readonly Route[],
  find: RouteFinder = createRouteFinder(routes),
): (method: string, path: string) => Route | undefined {
  return function matchRoute(method, path) {
    const at = find(method, path)
    return at === undefined ? undefined : routes[at]
  }
}

/** Whether a finder for the one list is right for the other: their routes match the same requests. */
export const findAlike = (a: readonly Route[], b: readonly Route[]): boolean =>
  a === b || (a.length === b.length && a.every(({ template }, at) => template === b[at]?.template))

/** What `createRouteMatcher` finds routes by. Of ten thousand routes it takes tens of milliseconds. */
export function createRouteFinder(routes: readonly Route[]): RouteFinder {
  const plain = new Map<string, Methods>()
  const root = newNode()
  let patterned = false
  for (const [at, route] of routes.entries()) {
    const path = withoutEndingSlash(pathToMatch(route.path))
    if (path.includes('/:') || path.includes('/*')) {
      methodsAt(root, path).set(route.method, at)
      patterned = true
    } else {
      const methods: Methods = plain.get(path) ?? new Map()
      plain.set(path, methods.set(route.method, at))
    }
  }
  return function findRoute(method, rawPath) {
    const path = withoutEndingSlash(pathToMatch(rawPath))
    return byMethod(plain.get(path), method) ?? (patterned ? search(root, path, 1, method) : undefined)
  }
}

/** Returns the node that a pattern ends at, and makes it if there is none. */
function methodsAt(root: Node, path: string): Methods {
  let node = root
  for (const segment of path.slice(1).split('/')) {
    if (segment === '*') {
      node.wildcards ??= new Map()
      return node.wildcards
    }
    const parameter = readParameter(segment)
    if (parameter === undefined) {
      node.statics ??= new Map()
      node = below(node.statics, segment)
    } else if (parameter.verb !== '') {
      node.verbs ??= new Map()
      node = below(node.verbs, parameter.verb)
    } else {
      node.param ??= newNode()
      node = node.param
    }
  }
  node.ends ??= new Map()
  return node.ends
}

/** Visits each node at most once: there is one way to reach it. `from` is where the next segment begins. */
function search(node: Node, path: string, from: number, method: string): number | undefined {
  if (from > path.length || path.length === 1) {
    return byMethod(node.ends, method) ?? byMethod(node.wildcards, method)
  }
  const slash = path.indexOf('/', from)
  const end = slash === -1 ? path.length : slash
  const segment = path.slice(from, end)
  const next = node.statics?.get(segment)
  let at = next === undefined ? undefined : search(next, path, end + 1, method)
  if (at === undefined && node.verbs !== undefined) {
    // What `:name` stands for may have colons and is not empty; verbs have none.
    const colon = segment.lastIndexOf(':')
    const verb = colon > 0 ? node.verbs.get(segment.slice(colon + 1)) : undefined
    if (verb !== undefined) at = search(verb, path, end + 1, method)
  }
  // `:name` does not match an empty segment.
  if (at === undefined && node.param !== undefined && end > from) at = search(node.param, path, end + 1, method)
  return at ?? byMethod(node.wildcards, method)
}

function byMethod(methods: Methods | undefined, method: string): number | undefined {
  if (methods === undefined) return undefined
  return methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined) ?? methods.get('*')
}

const newNode = (): Node => ({
  statics: undefined,
  param: undefined,
  verbs: undefined,
  ends: undefined,
  wildcards: undefined,
})

function below(nodes: Map<string, Node>, name: string): Node {
  const found = nodes.get(name) ?? newNode()
  nodes.set(name, found)
  return found
}

/** A segment of a route's path that stands for what a request has there. */
export interface Parameter {
  readonly name: string
  /** What is written behind it, as in `:model:generateContent`; empty without. */
  readonly verb: string
}

/** Takes `:name` or `:name:verb` apart; undefined for a segment that is written out. */
export function readParameter(segment: string): Parameter | undefined {
  const [, name, verb = ''] = parameterPattern.exec(segment) ?? []
  return name === undefined ? undefined : { name, verb }
}

/** A verb has only characters that no path escapes. */
const parameterPattern = /^:([A-Za-z_]\w{0,63})(?::([\w.~-]{1,64}))?$/

const withoutEndingSlash = (path: string) => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
