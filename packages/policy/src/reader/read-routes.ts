import { normalizePath, pathToMatch } from '@weir/core/http/normalize-path.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import { descriptorMethod, readDescriptorPath } from '../match/match-descriptor.ts'
import { type CostSource, noRouteLimits, type Plan, type Route, type Upstream } from '../policy.ts'
import { costSourceRule, parseCostSource } from './cost-source.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import type { Limits } from './read-limits.ts'
import { RouteLimits } from './read-route-limits.ts'
import { readSettlement } from './read-route-settlement.ts'
import type { ValueReader } from './value-reader.ts'

/** Routes of a policy: a table that people can still read, and a matcher that stays small. */
const routesMax = 10_000
const templateLengthMax = 256
const routeKeys = ['match', 'cost', 'upstream', 'limits', 'settle', 'settleMax', 'refundOn']
const matchRule = '"METHOD /path", such as "POST /v1/search", "GET /v1/users/:id" or "* /files/*"'

/** What routes refer to. */
export interface RouteReferences {
  readonly upstreams: ReadonlyMap<string, Upstream | undefined>
  readonly limits: Limits
  readonly plans: ReadonlyMap<string, Plan | undefined>
}

/** The routes in the policy's order. No two match the same requests. */
export function readRoutes(reader: PolicyReader, place: Place, known: RouteReferences): readonly Route[] {
  const items = reader.list(place, 'a list of routes') ?? []
  if (items.length > routesMax) reader.problem(place, `has ${items.length} routes; a policy has at most ${routesMax}`)
  const routes: Route[] = []
  const shapes = new Map<string, Place>()
  const routeLimits = new RouteLimits(reader, known.limits, known.plans)
  for (const item of items.slice(0, routesMax)) {
    const fields = reader.fields(item, 'a route', routeKeys, ['match'])
    const matchAt = fields?.get('match')
    const costAt = fields?.get('cost')
    const match = matchAt === undefined ? undefined : readMatch(reader, matchAt)
    const cost = costAt === undefined ? defaultCost : readCost(reader, costAt)
    const upstream = readUpstreamName(reader, fields?.get('upstream'), known.upstreams)
    const limits = routeLimits.read(fields?.get('limits'))
    const settlement = fields === undefined ? undefined : readSettlement(reader, fields)
    if (match === undefined || matchAt === undefined) continue
    if (match.method === descriptorMethod && fields !== undefined) refuseForDescriptors(reader, fields)
    const shape = shapeOf(match)
    const same = shapes.get(shape)
    if (same !== undefined)
      reader.problem(matchAt, `matches the same requests as the route on line ${reader.lineOf(same)}`)
    else shapes.set(shape, matchAt)
    if (cost === undefined || limits === undefined || settlement === undefined) continue
    routes.push({ ...match, ...cost, upstream, limits, ...settlement })
  }
  return routes
}

/**
 * Routes that were right and read as they did, with what they refer to now: the same array if that is the same too, and
 * whatever the answer, a problem if one could no longer be written so.
 */
export function keepRoutes(reader: ValueReader, routes: readonly Route[], known: RouteReferences): readonly Route[] {
  const routeLimits = new RouteLimits(reader, known.limits, known.plans)
  const lists = new Map<readonly Limit[], readonly Limit[]>([[noRouteLimits, noRouteLimits]])
  const limitsOf = (before: readonly Limit[]) => {
    const names = reader.open(before.map(({ name }) => name))
    const limits = routeLimits.read(names) ?? before
    const isSame = limits.every((limit, at) => limit === before[at])
    lists.set(before, isSame ? before : limits)
    return isSame ? before : limits
  }
  let isSame = true
  const kept = routes.map((route) => {
    const { upstream } = route
    if (upstream !== undefined && !known.upstreams.has(upstream)) reader.problem()
    const limits = lists.get(route.limits) ?? limitsOf(route.limits)
    if (limits === route.limits) return route
    isSame = false
    return { ...route, limits }
  })
  return isSame ? routes : kept
}

/** Whoever asks by descriptors passes the request on itself, and says what it costs by hits_addend. */
function refuseForDescriptors(reader: PolicyReader, fields: ReadonlyMap<string, Field>): void {
  for (const key of ['upstream', 'settle', 'settleMax', 'refundOn']) {
    const field = fields.get(key)
    if (field !== undefined) reader.problemAtKey(field, `a route for descriptors has no \`${key}\``)
  }
  const cost = fields.get('cost')
  if (cost !== undefined && typeof reader.scalar(cost) === 'string') {
    reader.problem(cost, 'must be a whole number: a descriptor says its cost by hits_addend')
  }
}

type Match = Pick<Route, 'method' | 'path' | 'template'>

function readMatch(reader: PolicyReader, place: Place): Match | undefined {
  const match = reader.text(place, matchRule, takeApart)
  if (match === undefined) return undefined
  const read = readPath(match)
  return 'why' in read ? reader.problem(place, `the path ${read.why}`) : { ...match, path: read.path }
}

/** The path in the one form in which it is compared. */
function readPath({ method, path }: Match): { readonly path: string } | { readonly why: string } {
  if (method === descriptorMethod) return readDescriptorPath(path)
  const normal = normalizePath(path)
  return normal.kind === 'refused' ? { why: normal.why } : { path: normal.path }
}

/** `METHOD /path` taken apart, with its path as the paths of requests are compared; undefined when it is not one. */
export function parseMatch(text: string): Match | undefined {
  const match = takeApart(text)
  const read = match === undefined ? undefined : readPath(match)
  return match === undefined || read === undefined || 'why' in read ? undefined : { ...match, path: read.path }
}

function takeApart(text: string): Match | undefined {
  if (text.length > templateLengthMax) return undefined
  const [, method, path] = /^(\*|[A-Z][A-Z-]{0,31}) (\/\S*)$/.exec(text) ?? []
  if (method === undefined || path === undefined) return undefined
  const segments = path === '/' ? [] : path.slice(1).replace(/\/$/, '').split('/')
  const good = segments.every((segment, index) =>
    method === descriptorMethod ? isDescriptorSegment(segment) : isSegment(segment, index === segments.length - 1),
  )
  return good ? { method, path, template: text } : undefined
}

/** Anything escaped, `:name` for any value, or a beginning and `*`. */
const isDescriptorSegment = (segment: string): boolean =>
  /^(?::[A-Za-z_]\w{0,63}|[A-Za-z0-9._~!$&'()+,;=@%-][A-Za-z0-9._~!$&'()+,;=@:%-]*\*?)$/.test(segment)

/** An escaped `:` or `*` at the beginning would be taken for a pattern once paths are compared. */
function isSegment(segment: string, isLast: boolean): boolean {
  if (segment === '*') return isLast
  if (/^%(?:2A|3A)/i.test(segment)) return false
  if (segment.startsWith(':')) return /^:[A-Za-z_]\w{0,63}$/.test(segment)
  return (
    segment !== '.' && segment !== '..' && /^[A-Za-z0-9._~!$&'()+,;=@%-][A-Za-z0-9._~!$&'()+,;=@:%-]*$/.test(segment)
  )
}

const shapeOf = ({ method, path }: { method: string; path: string }) =>
  `${method} ${(method === descriptorMethod ? path : pathToMatch(path))
    .replaceAll(/\/:\w+/g, '/:')
    .replace(/(?<=.)\/$/, '')}`

interface Cost {
  readonly cost: number
  readonly costFrom: CostSource | undefined
}

const defaultCost: Cost = { cost: 1, costFrom: undefined }

function readCost(reader: PolicyReader, field: Field): Cost | undefined {
  if (typeof reader.scalar(field) === 'string') {
    const costFrom = reader.text(field, `a whole number, or ${costSourceRule}`, parseCostSource)
    return costFrom === undefined ? undefined : { cost: 1, costFrom }
  }
  const cost = reader.integer(field, 0, costMax)
  return cost === undefined ? undefined : { cost, costFrom: undefined }
}

function readUpstreamName(
  reader: PolicyReader,
  field: Field | undefined,
  upstreams: ReadonlyMap<string, Upstream | undefined>,
): string | undefined {
  const name = field === undefined ? undefined : reader.text(field, 'the name of an upstream', (text) => text)
  if (field === undefined || name === undefined || upstreams.has(name)) return name
  return reader.problem(field, `there is no upstream ${JSON.stringify(name)}${reader.near(name, upstreams.keys())}`)
}
