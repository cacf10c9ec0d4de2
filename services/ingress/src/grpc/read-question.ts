import { hash } from 'node:crypto'
import { type Limit, limitsPerDecisionMax } from '@weir/core/limits/limit.ts'
import type { NamedValues } from '@weir/core/limits/limit-store.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import { attributesOfKeys, descriptorMethod } from '@weir/policy/match/match-descriptor.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Route } from '@weir/policy/policy.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import type { PolicyView } from '../policy-view.ts'
import {
  attributesOf,
  combineLimits,
  type MetLimit,
  overrideAttribute,
  overrideLimit,
  overrideValue,
  scopesOf,
  type Values,
} from './descriptor-limits.ts'
import type { Descriptor, RateLimitRequest } from './messages.ts'
import { type ResolvedTarget, resolveSubject, unnamedTarget } from './resolve-subject.ts'

/** Names come from a gateway's configuration. */
const nameLengthMax = 128
/** Longer values, which may come from clients, are replaced by their hash. */
const valueLengthMax = 1_024
/** Envoy sends one for each list of actions of a route, and few entries in each. */
const descriptorsMax = 32
const entriesMax = 16

/**
 * What hits of a descriptor are: asked for; used already, so that they are charged whether they fit or not; or charged
 * before and not used.
 */
type Hits = 'asked' | 'used' | 'given-back'

/** The descriptors of a call whose hits are one of these, by their positions. */
export interface QuestionPart {
  readonly hits: Hits
  readonly descriptors: readonly number[]
  readonly question: Question | Exclude<ResolvedTarget, { readonly kind: 'named' }>
}

/** What a gateway asks, in terms of the policy. */
export interface Question extends Extract<ResolvedTarget, { readonly kind: 'named' }> {
  readonly cost: number
  /** All descriptors only ask whether there is capacity. */
  readonly isPeek: boolean
  readonly named: NamedValues
  /** Undefined for those of subject and route. */
  readonly limits: readonly Limit[] | undefined
  readonly hasOverrides: boolean
  /** By position in `limits`: the descriptors that are subject to it; undefined for all. */
  readonly of: readonly (readonly number[] | undefined)[]
  /** By descriptor: whether the policy has anything for it. */
  readonly isKnown: readonly boolean[]
}

/** The gateway is not configured correctly. */
interface Wrong {
  readonly kind: 'wrong'
  readonly detail: string
}

const wrong = (detail: string): Wrong => ({ kind: 'wrong', detail })

type Part = ReturnType<typeof readPart>

/**
 * Reads a request by the policy: in a domain that it has routes for, each descriptor is subject to the limits of its
 * route; in any other, entries name subject, key, address, method and path. Limits that apply to all apply in both.
 * Nearly every request is one part.
 */
export function readQuestions(
  view: PolicyView,
  request: RateLimitRequest,
  nowMs: number,
): readonly QuestionPart[] | Wrong {
  const problem = whatIsWrong(request)
  if (problem !== undefined) return wrong(problem)
  const read = request.descriptors.map((descriptor) => readPart(view, request, descriptor))
  const parts: QuestionPart[] = []
  for (const hits of ['asked', 'used', 'given-back'] as const) {
    const descriptors = read.flatMap((part, at) => (part.use === hits ? [at] : []))
    if (descriptors.length === 0) continue
    const own = descriptors.length === read.length ? read : read.filter(({ use }) => use === hits)
    const question = questionOf(view, request, own, nowMs)
    if (question.kind === 'wrong') return question
    parts.push({ hits, descriptors, question })
  }
  return parts
}

function questionOf(
  view: PolicyView,
  { domain, hitsAddend }: RateLimitRequest,
  parts: readonly Part[],
  nowMs: number,
): QuestionPart['question'] | Wrong {
  const isRouted = view.descriptors.knows(domain)
  const [first] = parts
  const values = parts.length === 1 && first !== undefined ? first.values : union(parts)
  const ofRoute = parts.find(({ route }) => route !== undefined)?.route
  const who = isRouted
    ? unnamedTarget(view, domain, values, ofRoute ?? unmatchedRoute)
    : resolveSubject(view, domain, values, nowMs)
  if (who.kind !== 'named') return who
  // The costs that several descriptors give for one request are not added up.
  const costs = parts.map(({ hits, route }) => hits ?? saidBy(hitsAddend) ?? (route ?? who.route).cost)
  // A gateway may take it from a header of its client's, so it is no error, which would let the request through.
  if (Math.max(...costs) > costMax) return { kind: 'refused', detail: `hits_addend is above ${costMax}.` }
  const isPeek = parts.every(({ hits }) => hits === 0)
  const cost = isPeek ? 1 : Math.max(...costs)
  const known = {
    ...who,
    cost,
    isPeek,
    named: withScopes(scopesOf(values), view.readScopes(who)),
    isKnown: parts.map(({ route }) => !isRouted || route !== undefined),
  }
  if (parts.length === 1 && first?.override === undefined)
    return { ...known, limits: undefined, hasOverrides: false, of: [] }
  const met = metLimits(view, known, { parts, values, costs: isPeek ? costs.map(() => 1) : costs })
  const { limits, hasOverrides, of } = combineLimits(met, values, cost)
  if (limits.length > limitsPerDecisionMax) {
    return wrong(
      `The descriptors meet ${limits.length} limits together; a decision can have at most ${limitsPerDecisionMax}.`,
    )
  }
  return { ...known, limits, hasOverrides, of }
}

/** Attributes are read from descriptors; of what else limits count by, a gateway's path has the parameters. */
const withScopes = (attributes: NamedValues, others: NamedValues | undefined): NamedValues =>
  others === undefined || others.size === 0 ? attributes : new Map([...others, ...attributes])

/** What the request says of the descriptors that give no cost; undefined where it says nothing. */
const saidBy = (hitsAddend: number) => (hitsAddend > 0 ? hitsAddend : undefined)

function useOf({ isNegativeHits }: Descriptor, route: Route | undefined, cost: number | undefined): Hits {
  if (isNegativeHits === true) return 'given-back'
  return route?.chargesBeyond === true && (cost ?? route.cost) > 0 ? 'used' : 'asked'
}

/** One descriptor, read; `hits` is its own cost, undefined where it gives none. */
function readPart(view: PolicyView, { domain, hitsAddend: said }: RateLimitRequest, descriptor: Descriptor) {
  const { ipv6Prefix } = view.policy.identity
  const names = attributesOfKeys(descriptor.entries.map(({ key }) => key))
  const values = new Map(
    descriptor.entries.map(({ key, value }, at) => [names[at] ?? key, boundedValue(key, value, ipv6Prefix)]),
  )
  const override = overrideLimit(descriptor)
  if (override !== undefined) values.set(overrideAttribute, overrideValue(domain, descriptor))
  const { hitsAddend, entries } = descriptor
  const [hits, route] = [hitsAddend?.value, view.descriptors.match(domain, entries)]
  return { values, override, route, hits, use: useOf(descriptor, route, hits ?? saidBy(said)) }
}

/** Bounds a value. Addresses count as everywhere, IPv6 by its network. A path is read as a whole. */
function boundedValue(key: string, value: string, ipv6Prefix: number): string {
  if (key === 'path') return value
  if (key === 'remote_address') return addressScope(value, ipv6Prefix) || value.slice(0, valueLengthMax)
  return value.length <= valueLengthMax ? value : hash('sha256', value, 'base64url')
}

/** Unites the values of all descriptors; of an attribute that several have, the first one's value. */
function union(parts: readonly Part[]): Values {
  const values = new Map<string, string>()
  for (const part of parts) for (const [name, value] of part.values) if (!values.has(name)) values.set(name, value)
  return values
}

/** All limits that apply to the request: those of its subject, once, and those of each descriptor. */
function metLimits(
  view: PolicyView,
  { subject, route, ip, cost }: Pick<Question, 'subject' | 'route' | 'ip' | 'cost'>,
  asked: { readonly parts: readonly Part[]; readonly values: Values; readonly costs: readonly number[] },
): readonly MetLimit[] {
  const { parts, values, costs } = asked
  const own = ({ hits, values }: Part, at: number) => ({
    values,
    cost: costs[at] ?? cost,
    isPeek: hits === 0 && costs[at] === 0,
    of: [at],
  })
  const shared = route.method === descriptorMethod ? unmatchedRoute : route
  const isMet = ({ by }: Limit) => ip !== '' || by.every(({ kind }) => kind !== 'ip')
  const resolve = ip === '' ? view.resolveWithoutAddress : view.resolveLimits
  const ofAll = resolve(subject, shared).flatMap((limit): readonly MetLimit[] => {
    const names = attributesOf(limit)
    const theirs = parts.flatMap((part, at) => (names.every((name) => part.values.has(name)) ? [{ part, at }] : []))
    if (names.length === 0 || theirs.length === 0) return [{ limit, values, cost, isPeek: false, of: undefined }]
    // The limit counts by descriptors' values: each descriptor that has them counts.
    return theirs.map(({ part, at }) => ({ limit, ...own(part, at) }))
  })
  const ofEach = parts.flatMap((part, at): readonly MetLimit[] => {
    const limits = part.override === undefined ? (part.route?.limits ?? []) : [part.override]
    return limits.filter(isMet).map((limit) => ({ limit, ...own(part, at) }))
  })
  return [...ofEach, ...ofAll]
}

/** What a correctly configured gateway never sends, whatever its clients send; undefined if there is none. */
function whatIsWrong({ domain, descriptors }: RateLimitRequest): string | undefined {
  const isName = (text: string) => text !== '' && text.length <= nameLengthMax && /^\P{Cc}*$/u.test(text)
  if (!isName(domain)) return `domain must have 1 to ${nameLengthMax} characters and no control characters.`
  if (descriptors.length === 0 || descriptors.length > descriptorsMax) {
    return `There must be 1 to ${descriptorsMax} descriptors, but there are ${descriptors.length}.`
  }
  for (const [at, { entries, limit }] of descriptors.entries()) {
    if (entries.length === 0 || entries.length > entriesMax) {
      return `descriptors[${at}] must have 1 to ${entriesMax} entries, but has ${entries.length}.`
    }
    if (entries.some(({ key }) => !isName(key))) {
      return `descriptors[${at}] has an entry with an invalid key: a key has 1 to ${nameLengthMax} characters and no control characters.`
    }
    if (limit !== null && limit.unit === 0) return `descriptors[${at}].limit has no unit.`
  }
  return undefined
}
