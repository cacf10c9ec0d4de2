import { definedFields } from '@weir/core/defined-fields.ts'
import { didYouMean } from '@weir/core/suggest.ts'
import { ancestorsOf } from '@weir/policy/ancestors.ts'
import { createRouteMatcher, unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { type ExplainedLimit, explainLimits } from '@weir/policy/match/resolve-limits.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import { keyWithId, type Policy, type Route, type Subject } from '@weir/policy/policy.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import type { KnownScope } from './keys.ts'

/** Whose limits, and which of them, in a person's words. */
export interface LimitQuery {
  readonly subject: string
  readonly keyId?: string
  readonly ip?: string
  /** A request's method and path, such as `POST /v1/search`. */
  readonly route?: string
  readonly limit?: string
  /** Asked by the subject itself, to which other subjects, their limits and limits in shadow are not named. */
  readonly isOwn?: boolean
}

/** Whose calendar a limit's periods follow, and what was named of the scope. */
export interface AskedScope extends KnownScope {
  readonly timeZone: string
  readonly anchor: number
}

/** What was asked, in terms of the policy. */
export interface AskedLimits {
  readonly subject: Subject
  /** Undefined when none was named: then of every route. */
  readonly route: Route | undefined
  readonly limits: readonly ExplainedLimit[]
  readonly scope: AskedScope
}

type FoundLimits =
  | { readonly kind: 'found'; readonly asked: AskedLimits }
  /** The policy has nothing of that name. */
  | { readonly kind: 'unknown'; readonly message: string }
  /** The query itself cannot be understood; `field` of it. */
  | { readonly kind: 'malformed'; readonly field: 'route' | 'ip'; readonly message: string }

/** `POST /v1/search`: a request's method and path, not a pattern of the policy. */
function findRoute(policy: Policy, text: string): { readonly route: Route; readonly method: string } | undefined {
  const [, method, path] = /^([A-Z][A-Z-]{0,31}) (\/[^\s?]*)$/.exec(text) ?? []
  if (method === undefined || path === undefined) return undefined
  return { route: createRouteMatcher(policy.routes)(method, path) ?? unmatchedRoute, method }
}

/** Finds in the policy what was asked. */
export function findAskedLimits(policy: Policy, query: LimitQuery): FoundLimits {
  const subject = subjectNamed(policy, query.subject)
  if (subject === undefined) {
    const near = query.isOwn === true ? '' : didYouMean(query.subject, policy.subjects.keys())
    return { kind: 'unknown', message: `The policy has no subject ${JSON.stringify(query.subject)}${near}` }
  }
  const route = query.route === undefined ? undefined : findRoute(policy, query.route)
  if (query.route !== undefined && route === undefined) {
    const what = `a method and a path, such as "POST /v1/search", not ${JSON.stringify(query.route)}`
    return { kind: 'malformed', field: 'route', message: `takes ${what}` }
  }
  const ip = query.ip === undefined ? undefined : addressScope(query.ip, policy.identity.ipv6Prefix)
  if (ip === '') {
    const what = `an IPv4 or IPv6 address, not ${JSON.stringify(query.ip)}`
    return { kind: 'malformed', field: 'ip', message: `takes ${what}` }
  }
  const key = query.keyId === undefined ? undefined : keyWithId(policy, query.keyId)
  // A key may have sizes of its own.
  const who = key?.subject.id === subject.id ? key.subject : subject
  const explained = explainLimits(policy, who, route?.route).filter(
    ({ limit }) => query.isOwn !== true || limit.mode === 'enforce',
  )
  // A customer may ask about its own limits; those above refuse its requests all the same.
  const askable = explained.filter(({ at }) => query.isOwn !== true || at === undefined)
  const limits = query.limit === undefined ? explained : askable.filter(({ limit }) => limit.name === query.limit)
  if (query.limit !== undefined && limits.length === 0) {
    const names = askable.map(({ limit }) => limit.name)
    const what = `No limit ${JSON.stringify(query.limit)} applies to ${subject.id}`
    return { kind: 'unknown', message: `${what}${didYouMean(query.limit, names)}` }
  }
  const { id, timeZone, anchor } = subject
  const above = subject.parent && ancestorsOf(subject)
  const named = { keyId: query.keyId, ip, route: route?.route.template, method: route?.method }
  const scope: AskedScope = { subject: id, timeZone, anchor, ...definedFields({ ...named, above }) }
  return { kind: 'found', asked: { subject, route: route?.route, limits, scope } }
}
