import { type ExplainedLimit, explainLimits } from '@weir/policy/match/explain-limits.ts'
import { createRouteMatcher, unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import type { Policy, Route, Subject } from '@weir/policy/policy.ts'
import { didYouMean } from '@weir/policy/suggest.ts'
import type { KnownScope } from './keys.ts'

/** Whose limits, and which of them, in a person's words. */
export interface LimitQuestion {
  readonly subject: string
  readonly keyId?: string
  readonly ip?: string
  /** A request's method and path, such as `POST /v1/search`. */
  readonly route?: string
  readonly limit?: string
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

export type FoundLimits =
  | { readonly kind: 'found'; readonly asked: AskedLimits }
  /** The policy has nothing of that name. */
  | { readonly kind: 'unknown'; readonly message: string }
  /** The question itself cannot be understood; `field` of it. */
  | { readonly kind: 'malformed'; readonly field: 'route' | 'ip'; readonly message: string }

/** `POST /v1/search`: a request's method and path, not a pattern of the policy. */
function findRoute(policy: Policy, text: string): { readonly route: Route; readonly method: string } | undefined {
  const [, method, path] = /^([A-Z][A-Z-]{0,31}) (\/[^\s?]*)$/.exec(text) ?? []
  if (method === undefined || path === undefined) return undefined
  return { route: createRouteMatcher(policy.routes)(method, path) ?? unmatchedRoute, method }
}

/** Finds in the policy what was asked. `addressScope` gives the address that a caller counts by, empty for none. */
export function findAskedLimits(
  policy: Policy,
  question: LimitQuestion,
  addressScope: (address: string) => string,
): FoundLimits {
  const subject = subjectNamed(policy, question.subject)
  if (subject === undefined) {
    const near = didYouMean(question.subject, policy.subjects.keys())
    return { kind: 'unknown', message: `The policy has no subject ${JSON.stringify(question.subject)}${near}` }
  }
  const route = question.route === undefined ? undefined : findRoute(policy, question.route)
  if (question.route !== undefined && route === undefined) {
    const what = `a method and a path, such as "POST /v1/search", not ${JSON.stringify(question.route)}`
    return { kind: 'malformed', field: 'route', message: `takes ${what}` }
  }
  const ip = question.ip === undefined ? undefined : addressScope(question.ip)
  if (ip === '') {
    const what = `an IPv4 or IPv6 address, not ${JSON.stringify(question.ip)}`
    return { kind: 'malformed', field: 'ip', message: `takes ${what}` }
  }
  const explained = explainLimits(policy, subject, route?.route)
  const limits = explained.filter(({ limit }) => question.limit === undefined || limit.name === question.limit)
  if (question.limit !== undefined && limits.length === 0) {
    const names = explained.map(({ limit }) => limit.name)
    const what = `No limit ${JSON.stringify(question.limit)} applies to ${subject.id}`
    return { kind: 'unknown', message: `${what}${didYouMean(question.limit, names)}` }
  }
  const { id, timeZone, anchor } = subject
  const scope: AskedScope = {
    ...{ subject: id, timeZone, anchor },
    ...(question.keyId === undefined ? {} : { keyId: question.keyId }),
    ...(ip === undefined ? {} : { ip }),
    ...(route === undefined ? {} : { route: route.route.template, method: route.method }),
  }
  return { kind: 'found', asked: { subject, route: route?.route, limits, scope } }
}
