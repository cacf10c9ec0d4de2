import type { JsonObject, PolicyFault } from '../entities.ts'
import { defaultIdentity, type Policy, type Route } from '../policy.ts'
import { checkCountedParameters } from './check-parameters.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { blockEntries, readBlocks } from './read-blocks.ts'
import { endpointEntries, readEndpoints } from './read-endpoints.ts'
import { identity, readIdentity } from './read-identity.ts'
import { type LimitReferences, limitEntries, readLimits } from './read-limits.ts'
import { meterEntries, readMeters } from './read-meters.ts'
import { ownAlertsEntries, readOwnAlerts } from './read-own-alerts.ts'
import { planEntries, readPlans } from './read-plans.ts'
import { portalEntries, readPortals } from './read-portals.ts'
import { type Prices, priceEntries, readPrices } from './read-prices.ts'
import { rateCardEntries, readRateCards } from './read-rate-cards.ts'
import { readRefusals, refusalEntries } from './read-refusal.ts'
import { keepRoutes, type RouteReferences, readRoutes, routeList } from './read-routes.ts'
import { readSilences, silenceEntries } from './read-silences.ts'
import { readSubjects, subjectEntries } from './read-subjects.ts'
import { readTokens, tokenEntries } from './read-tokens.ts'
import { readUnsubscribed, unsubscribedEntries } from './read-unsubscribed.ts'
import { readUpstreams, upstreamEntries } from './read-upstreams.ts'
import { readWatches, watchEntries } from './read-watches.ts'
import { remarkOnBudgets } from './remark-on-budgets.ts'
import { remarkOnClientLeases } from './remark-on-client-leases.ts'
import { remarkOnLimits } from './remark-on-limits.ts'
import { type PolicyProblem, TextReader } from './text-reader.ts'
import { type PolicyValue, ValueReader } from './value-reader.ts'
import * as t from './value-types.ts'

type ParsedPolicy =
  /** `written`: names and values of a section as JSON has them, with nothing filled in; of a list by number. */
  | {
      readonly kind: 'policy'
      readonly policy: Policy
      /** What is right and does nothing, or less than its writer may expect. */
      readonly remarks: readonly PolicyProblem[]
      readonly written: (section: string) => readonly (readonly [name: string, value: unknown])[]
    }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyProblem[] }

const described = (description: string, { schema }: { readonly schema: JsonObject }) => ({ description, ...schema })

/** The sections of weir.yaml as JSON Schema. */
const sections = {
  version: { description: 'Version of the policy format.', const: 1 },
  identity: { description: 'How callers are identified.', ...t.emptyOr(identity.schema) },
  tokens: described('Tokens for people and programs that administer Weir, by name.', tokenEntries),
  plans: described('Named sets of limits.', planEntries),
  prices: described('Price lists, by name.', priceEntries),
  rateCards: described('What requests cost; each makes a unit of its name, which limits can count.', rateCardEntries),
  limits: described('Limits by name; the name is part of the Redis key.', limitEntries),
  routes: { description: 'Methods and paths, with the cost of a request.', ...t.emptyOr(routeList.schema) },
  refusals: described('Responses to refused requests, by reason.', refusalEntries),
  upstreams: described('APIs behind the ingress, by name.', upstreamEntries),
  meters: described('What measures what requests use, by name.', meterEntries),
  subjects: described('The customers to limit and meter, by id.', subjectEntries),
  endpoints: described('Destinations of alerts, by name.', endpointEntries),
  watches: described('Sudden changes that raise alerts, by name.', watchEntries),
  silences: described('Silences, which suppress alerts, by name; written by the admin API.', silenceEntries),
  blocks: described('Manual blocks and exemptions, by name; written by the admin API.', blockEntries),
  unsubscribed: described(
    'Contact addresses that opted out of mail, by subject; written by the links in mails.',
    unsubscribedEntries,
  ),
  ownAlerts: described("Customers' own alert settings, by subject; written by the customer page.", ownAlertsEntries),
  portals: described('Revocations of portal tokens, by subject; written by the admin API.', portalEntries),
}

const sectionNames = Object.keys(sections)

/**
 * The JSON Schema of weir.yaml, made of the tables by which it is read: docs/weir.schema.json. A test compares the
 * two, and writes the file: `node node_modules/vitest/vitest.mjs run --project unit
 * packages/policy/src/reader/policy-schema.test.ts -u`.
 */
export const policySchema: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'weir.schema.json',
  title: "Weir's policy (weir.yaml)",
  type: 'object',
  additionalProperties: false,
  properties: sections,
  description:
    'For editors. docs/policy.md explains every key; `weir check` also applies the rules that a schema cannot express.',
  required: ['version'],
}

/**
 * Reads weir.yaml (YAML 1.2, or JSON) as docs/policy.md describes it. Either every word of it is understood and
 * checked, or all its problems are returned together, in the order of the file; `fileName` is only for their text.
 */
export function parsePolicy(text: string, fileName: string): ParsedPolicy {
  const reader = new TextReader(fileName)
  const root = reader.open(text)
  const policy = root === undefined ? undefined : readPolicy(reader, root, emptyPolicy, {})
  const { problems } = reader
  if (problems.length > 0 || policy === undefined || root === undefined) return { kind: 'problems', problems }
  const sectionsAt = reader.map(root, 'a policy')
  const limitsAt = sectionsAt?.get('limits')
  if (limitsAt !== undefined && !reader.isEmpty(limitsAt)) remarkOnLimits(reader, limitsAt, policy)
  remarkOnBudgets(reader, policy)
  const plansAt = sectionsAt?.get('plans')
  if (plansAt !== undefined && !reader.isEmpty(plansAt)) remarkOnClientLeases(reader, plansAt, policy)
  const written = (section: string) => {
    const at = sectionsAt?.get(section)
    return at === undefined ? [] : reader.written(at)
  }
  return { kind: 'policy', policy, remarks: reader.remarks, written }
}

/**
 * As `parsePolicy`, of values that a text would say; problems have paths and no lines. Limits and plans that are as
 * they were in `before` are the same objects. Sections that are kept are as they were in `before`, and are not in
 * `value`.
 */
export function readValues(
  value: PolicyValue,
  before: Policy,
  kept: { readonly upstreams: boolean; readonly routes: boolean },
): { readonly policy: Policy | undefined; readonly problems: readonly PolicyFault[] } {
  const reader = new ValueReader()
  const policy = readPolicy(reader, reader.open(value), before, {
    upstreams: kept.upstreams ? before.upstreams : undefined,
    routes: kept.routes ? (known) => keepRoutes(reader, before.routes, known) : undefined,
  })
  return { policy: reader.problemCount > 0 ? undefined : policy, problems: reader.faults }
}

interface Reuse {
  readonly upstreams?: Policy['upstreams'] | undefined
  readonly routes?: ((known: RouteReferences) => readonly Route[]) | undefined
}

/** Nobody and nothing: what is in force before there is a policy. */
export const emptyPolicy: Policy = {
  plans: new Map(),
  prices: new Map(),
  rateCards: new Map(),
  limits: new Map(),
  limitsForAll: [],
  routes: [],
  refusals: new Map(),
  upstreams: new Map(),
  meters: new Map(),
  subjects: new Map(),
  keys: new Map(),
  endpoints: new Map(),
  watches: new Map(),
  silences: new Map(),
  blocks: new Map(),
  identity: defaultIdentity,
  tokens: new Map(),
  portals: new Map(),
  contacts: new Map(),
  unsubscribed: new Map(),
  ownAlerts: new Map(),
}

function readPolicy(reader: PolicyReader, root: SourcePosition, before: Policy, kept: Reuse): Policy | undefined {
  const fields = reader.fields(root, 'a policy', sectionNames, ['version'])
  if (fields === undefined) return undefined
  const version = fields.get('version')
  if (version !== undefined && reader.scalar(version) !== 1)
    reader.problem(version, 'must be 1, the only supported version')
  // A section that is empty, say because all of it is commented out, is as good as one left out.
  const section = <T, N = T>(name: string, read: (reader: PolicyReader, at: SourcePosition) => T, none: N): T | N => {
    const field = fields.get(name)
    return field === undefined || reader.isEmpty(field) ? none : read(reader, field)
  }
  const namedSection = <T>(
    name: string,
    read: (reader: PolicyReader, at: SourcePosition) => ReadonlyMap<string, T | undefined>,
  ): ReadonlyMap<string, T> => present(section(name, read, new Map<string, T>()))
  const rateCards = section('rateCards', readRateCards, new Map())
  const named: LimitReferences = { counted: [], plans: [], rateCards }
  const noLimits = new Map<string, undefined>()
  const limits = section('limits', (_, field) => readLimits(reader, field, before.limits, named), noLimits)
  const priced = section('prices', readPrices, undefined)
  const prices: Prices = priced?.lists ?? new Map()
  const plans = section('plans', (_, field) => readPlans(reader, field, { limits, prices }, before.plans), new Map())
  for (const { value, at } of named.plans) reader.find(at, 'plan', value, plans)
  const upstreams = kept.upstreams ?? section('upstreams', readUpstreams, new Map())
  const meters = section('meters', (_, field) => readMeters(reader, field, before.meters, rateCards), new Map())
  const known = { upstreams, meters, limits, plans }
  const soFar = reader.problemCount
  const routes = kept.routes?.(known) ?? section('routes', (_, field) => readRoutes(reader, field, known), [])
  // Routes that are wrong are not among them, and may be those that have the parameter.
  if (reader.problemCount === soFar) {
    checkCountedParameters(reader, named.counted, routes)
    priced?.checkRoutes(routes)
  }
  const refusals = namedSection('refusals', readRefusals)
  const none = { subjects: new Map(), keys: new Map(), contacts: new Map() }
  const { subjects, keys, contacts } = section(
    'subjects',
    (_, field) => readSubjects(reader, field, { plans, limits, routes, prices }),
    none,
  )
  const whole = present(limits)
  return {
    plans: present(plans),
    prices: present(prices),
    rateCards: present(rateCards),
    limits: whole,
    limitsForAll: [...whole.values()].filter((limit) => limit.applies === 'all'),
    routes,
    refusals,
    upstreams: kept.upstreams ?? present(upstreams),
    meters: present(meters),
    subjects,
    keys,
    contacts,
    endpoints: namedSection('endpoints', readEndpoints),
    watches: namedSection('watches', readWatches),
    silences: namedSection('silences', readSilences),
    blocks: namedSection('blocks', readBlocks),
    identity: section('identity', (_, field) => readIdentity(reader, field, plans), defaultIdentity),
    tokens: section('tokens', readTokens, emptyPolicy.tokens),
    portals: namedSection('portals', readPortals),
    unsubscribed: namedSection('unsubscribed', readUnsubscribed),
    ownAlerts: namedSection('ownAlerts', readOwnAlerts),
  }
}

function present<T>(entries: ReadonlyMap<string, T | undefined>): ReadonlyMap<string, T> {
  const found = new Map<string, T>()
  for (const [name, value] of entries) if (value !== undefined) found.set(name, value)
  return found
}
