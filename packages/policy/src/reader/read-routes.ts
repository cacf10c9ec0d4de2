import { definedFields } from '@weir/core/defined-fields.ts'
import { normalizePath, pathToMatch } from '@weir/core/http/normalize-path.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { costMax, settleMsMax } from '@weir/core/limits/limit-store.ts'
import { type Meter, presetMeters } from '@weir/meters/meter.ts'
import { descriptorMethod, readDescriptorPath } from '../match/match-descriptor.ts'
import { readParameter } from '../match/match-route.ts'
import { noRouteLimits, type Route, type Upstream } from '../policy.ts'
import { type CostSource, costPattern, costSourceRule, parseCostSource } from '../policy-values.ts'
import { checkRouteLimits, parametersOf } from './check-parameters.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import { clientLease, coalesce, type Limits, limitNames, type Plans, routeLimitsReader } from './read-plans.ts'
import { refusalMembers, refusalsOf } from './read-refusal.ts'
import type { ValueReader } from './value-reader.ts'
import * as t from './value-types.ts'

/** Routes of a policy: a table that people can still read, and a matcher that stays small. */
const routesMax = 10_000
const templateLengthMax = 256
/** Gateways name descriptors by routes of their own, percent-encoded. */
const descriptorLengthMax = 1_024
const statusesMax = 16
const matchRule = '"METHOD /path", such as "POST /v1/search", "GET /v1/users/:id" or "* /files/*"'
/** Path segments of routes, and of routes for descriptors. */
const plain = "[A-Za-z0-9._~!$&'()+,;=@%-][A-Za-z0-9._~!$&'()+,;=@:%-]*"
const anyValue = ':[A-Za-z_]\\w{0,63}'
const anyVerb = '(:[\\w.~-]{1,64})?'
const matchPattern = [
  `^${descriptorMethod} (/(${anyValue}|${plain}\\*?)){3,}$`,
  `^(?!${descriptorMethod} )(?=.{0,${templateLengthMax}}$)(\\*|[A-Z][A-Z-]{0,31}) (/$|(/(?!\\.{1,2}(/|$))(${anyValue}${anyVerb}|${plain.replaceAll(';', '')}))*(/\\*?)?$)`,
].join('|')

const match = t.checked(
  t.text(matchRule, takeApart, { maxLength: descriptorLengthMax, pattern: matchPattern }),
  (found, reader, at): Match | undefined => {
    const read = readPath(found)
    return 'why' in read ? reader.problem(at, `the path ${read.why}`) : { ...found, path: read.path }
  },
)

const cost: t.ValueType<Pick<Route, 'cost' | 'costFrom'>> = {
  schema: {
    oneOf: [
      { type: 'integer', minimum: 0, maximum: costMax },
      { type: 'string', pattern: costPattern },
    ],
  },
  read(reader, at) {
    if (typeof reader.scalar(at) === 'string') {
      const costFrom = reader.text(at, `a whole number, or ${costSourceRule}`, parseCostSource)
      return costFrom === undefined ? undefined : { cost: 1, costFrom }
    }
    const units = reader.integer(at, 0, costMax)
    return units === undefined ? undefined : { cost: units, costFrom: undefined }
  },
}

const routeLease: t.ValueType<number> = {
  schema: { oneOf: [{ const: 'none' }, clientLease.schema] },
  read: (reader, at) => (reader.scalar(at) === 'none' ? 0 : clientLease.read(reader, at)),
}

const route = t.object('a route', {
  match: t.required(
    "METHOD /path; `:name` matches one segment, `:name:verb` a segment that ends in `:verb`, a final `*` any rest. DESCRIPTOR /DOMAIN/KEY/VALUE for descriptors of Envoy's rate limit service.",
    match,
  ),
  cost: t.withDefault('Units: a number, or where the request states it. Default: 1.', cost, {
    cost: 1,
    costFrom: undefined,
  }),
  upstream: t.optional('Name of the upstream, for any host.', t.anyText('the name of an upstream')),
  limits: t.optional("Limits in addition to the plan's.", limitNames),
  meter: t.optional(
    'What measures what requests use besides their cost: a meter, or openai, anthropic or mcp. none: nothing.',
    t.anyText('the name of a meter'),
  ),
  // Shorter, and no client could settle in time.
  settle: t.optional(
    'How long the cost of a decision can be settled: 1s to 24h.',
    t.duration('1s', `${settleMsMax / 3_600_000}h`, { rule: 'a duration such as 30s, 15m or 2h' }),
  ),
  settleMax: t.optional(
    'The most units that a decision can be settled to. Default: the size of its largest limit.',
    t.integer(0, costMax),
  ),
  refundOn: t.optional(
    'Response statuses for which the proxy refunds the cost.',
    t.list('a list of statuses such as [502, 503, 504]', t.integer(400, 599), {
      max: statusesMax,
      wrongCount: (count) => `has ${count} statuses, at most ${statusesMax}`,
      nameOf: Number,
    }),
  ),
  coalesce: t.optional("`1s` or `none`, instead of what the plan says. Default: the plan's.", coalesce),
  clientLease: t.optional("Less than the plan's, or `none`. Default: the plan's.", routeLease),
  beyond: t.optional(
    'For descriptors: `charge` counts hits that do not fit too. Default: deny.',
    t.oneOf(['deny', 'charge']),
  ),
  ...refusalMembers,
})

/** The section `routes`. */
export const routeList = t.list('a list of routes', route.found, {
  max: routesMax,
  wrongCount: (count) => `has ${count} routes; a policy can have at most ${routesMax}`,
})

/** What routes refer to. */
export interface RouteReferences {
  readonly upstreams: ReadonlyMap<string, Upstream | undefined>
  readonly meters: ReadonlyMap<string, Meter | undefined>
  readonly limits: Limits
  readonly plans: Plans
}

/** The routes in the policy's order. No two match the same requests. */
export function readRoutes(reader: PolicyReader, at: SourcePosition, known: RouteReferences): readonly Route[] {
  const routes: Route[] = []
  const shapes = new Map<string, SourcePosition>()
  const routeLimits = routeLimitsReader(reader, known.limits, known.plans)
  for (const itemAt of routeList.items(reader, at) ?? []) {
    const written = route.find(reader, itemAt)
    if (written === undefined) continue
    const { fields, values } = written
    const { match: found, cost: units, upstream, settle, settleMax, refundOn, beyond, meter } = values
    const [matchAt, upstreamAt, meterAt] = ['match', 'upstream', 'meter'].map((key) => fields.get(key))
    if (upstreamAt !== undefined && upstream !== undefined)
      reader.find(upstreamAt, 'upstream', upstream, known.upstreams)
    if (meterAt !== undefined && meter !== undefined) findMeter(reader, meterAt, meter, known)
    if (meter !== undefined && meter !== 'none') {
      for (const key of ['settle', 'settleMax'])
        reader.refuseKey(fields, key, 'conflicts with `meter`: the proxy settles')
    }
    if (values.coalesce === '1s') refuseToCoalesce(reader, fields, meter)
    const limits = values.limits === undefined ? noRouteLimits : routeLimits(fields.get('limits'), values.limits)
    if (found === undefined || matchAt === undefined) continue
    if (found.method === descriptorMethod) refuseForDescriptors(reader, fields)
    else reader.refuseKey(fields, 'beyond', 'only a route for descriptors can have `beyond`')
    if (values.limits !== undefined) checkRouteLimits(reader, found, values.limits, known.limits)
    const shape = shapeOf(found)
    const same = shapes.get(shape)
    if (same !== undefined) reader.problem(matchAt, `matches the same requests as the route ${reader.where(same)}`)
    else shapes.set(shape, matchAt)
    if (units === undefined || limits === undefined) continue
    routes.push({
      ...found,
      ...units,
      upstream,
      limits,
      ...definedFields({ settleMs: settle, settleMax, refundOn, meter, clientLeaseMs: values.clientLease }),
      ...(values.coalesce !== undefined && { coalesces: values.coalesce === '1s' }),
      ...(beyond === 'charge' && { chargesBeyond: true }),
      ...refusalsOf(reader, fields, values),
    })
  }
  return routes
}

/**
 * Routes that were right and read as they did, with what they refer to now: the same array if that is the same too. A
 * problem is added if one could no longer be written so; of routes with the same limits, for the first.
 */
export function keepRoutes(reader: ValueReader, routes: readonly Route[], known: RouteReferences): readonly Route[] {
  const routeLimits = routeLimitsReader(reader, known.limits, known.plans)
  const lists = new Map<readonly Limit[], readonly Limit[]>([[noRouteLimits, noRouteLimits]])
  const namesAt = ({ template, limits }: Route) =>
    reader.open(
      limits.map(({ name }) => name),
      'routes',
      template,
      'limits',
    )
  const limitsOf = (route: Route) => {
    const { limits: before } = route
    const names = namesAt(route)
    const limits = routeLimits(names, limitNames.read(reader, names) ?? []) ?? before
    const isSame = limits.every((limit, at) => limit === before[at])
    lists.set(before, isSame ? before : limits)
    return isSame ? before : limits
  }
  let isSame = true
  const kept = routes.map((one) => {
    const { upstream, template, meter } = one
    if (meter !== undefined) findMeter(reader, reader.open(meter, 'routes', template, 'meter'), meter, known)
    if (upstream !== undefined && !known.upstreams.has(upstream)) {
      reader.find(reader.open(upstream, 'routes', template, 'upstream'), 'upstream', upstream, known.upstreams)
    }
    const limits = lists.get(one.limits) ?? limitsOf(one)
    if (limits.some((limit) => parametersOf(limit).length > 0 || limit.plans !== undefined))
      checkRouteLimits(reader, one, limitNames.read(reader, namesAt(one)) ?? [], known.limits)
    if (limits === one.limits) return one
    isSame = false
    return { ...one, limits }
  })
  return isSame ? routes : kept
}

const findMeter = (reader: PolicyReader, at: SourcePosition, name: string, { meters }: RouteReferences) =>
  name === 'none' || presetMeters.has(name) ? undefined : reader.find(at, 'meter', name, meters)

/** A caller that asks by descriptors forwards the request itself, and says what it costs by hits_addend. */
function refuseForDescriptors(reader: PolicyReader, fields: Fields): void {
  for (const key of ['upstream', 'settle', 'settleMax', 'refundOn', 'refusal', 'refusals', 'meter', 'clientLease']) {
    reader.refuseKey(fields, key, `a route for descriptors cannot have \`${key}\``)
  }
  const costAt = fields.get('cost')
  if (costAt !== undefined && typeof reader.scalar(costAt) === 'string') {
    reader.problem(costAt, 'must be a whole number: a descriptor states its cost in hits_addend')
  }
}

/** What is known of a request only later needs a record of its own. */
function refuseToCoalesce(reader: PolicyReader, fields: Fields, meter: string | undefined): void {
  const known = ['settle', 'refundOn', ...(meter === undefined || meter === 'none' ? [] : ['meter'])]
  for (const key of known)
    reader.refuseKey(fields, key, 'conflicts with `coalesce: 1s`: what it changes has its own record')
}

type Match = Pick<Route, 'method' | 'path' | 'template'>

/** The path in the one form in which it is compared. */
function readPath({ method, path }: Match): { readonly path: string } | { readonly why: string } {
  if (method === descriptorMethod) return readDescriptorPath(path)
  const normal = normalizePath(path)
  return normal.kind === 'refused' ? { why: normal.why } : { path: normal.path }
}

/** `METHOD /path` taken apart, with its path as the paths of requests are compared; undefined when it is not one. */
export function parseMatch(written: string): Match | undefined {
  const found = takeApart(written)
  const read = found === undefined ? undefined : readPath(found)
  return found === undefined || read === undefined || 'why' in read ? undefined : { ...found, path: read.path }
}

function takeApart(text: string): Match | undefined {
  const [, method, path] = /^(\*|[A-Z][A-Z-]{0,31}) (\/\S*)$/.exec(text) ?? []
  if (method === undefined || path === undefined) return undefined
  if (text.length > (method === descriptorMethod ? descriptorLengthMax : templateLengthMax)) return undefined
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
  if (segment.startsWith(':')) return readParameter(segment) !== undefined
  return (
    segment !== '.' && segment !== '..' && /^[A-Za-z0-9._~!$&'()+,;=@%-][A-Za-z0-9._~!$&'()+,;=@:%-]*$/.test(segment)
  )
}

const shapeOf = ({ method, path }: { method: string; path: string }) =>
  `${method} ${(method === descriptorMethod ? path : pathToMatch(path))
    .replaceAll(/\/:\w+/g, '/:')
    .replace(/(?<=.)\/$/, '')}`
