import { WeirError } from '@weir/core/errors.ts'
import { type ExplainedLimit, explainLimits } from '@weir/core/policy/explain-limits.ts'
import { createRouteMatcher, unmatchedRoute } from '@weir/core/policy/match-route.ts'
import type { Policy, Route, Subject } from '@weir/core/policy/policy.ts'
import { requirePolicy } from '@weir/core/policy/require-policy.ts'
import { didYouMean } from '@weir/core/policy/suggest.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import type { AskedScope } from '@weir/redis/limit-admin.ts'
import { readPolicyFile } from '../read-policy-file.ts'

/** What the commands about limits are asked, as typed. */
export interface LimitOptions {
  readonly policy: string
  readonly data: string
  readonly json: boolean
  readonly subject: string
  readonly keyId?: string
  readonly ip?: string
  readonly route?: string
  readonly limit?: string
}

/** What was asked, in terms of the policy. */
export interface AskedLimits {
  readonly subject: Subject
  /** Undefined when none was named: then of every route. */
  readonly route: Route | undefined
  readonly limits: readonly ExplainedLimit[]
  readonly scope: AskedScope
}

const wrong = (message: string) => new WeirError('CONFIG_INVALID', message)

function findSubject(policy: Policy, { subject: id, policy: file }: LimitOptions): Subject {
  const subject = policy.subjects.get(id)
  if (subject !== undefined) return subject
  throw wrong(`The policy ${file} has no subject ${JSON.stringify(id)}${didYouMean(id, policy.subjects.keys())}`)
}

/** `POST /v1/search`: a request's method and path, not a pattern of the policy. */
function findRoute(policy: Policy, text: string): { readonly route: Route; readonly method: string } {
  const [, method, path] = /^([A-Z][A-Z-]{0,31}) (\/[^\s?]*)$/.exec(text) ?? []
  if (method === undefined || path === undefined) {
    throw wrong(`--route takes a method and a path, such as "POST /v1/search", not ${JSON.stringify(text)}`)
  }
  return { route: createRouteMatcher(policy.routes)(method, path) ?? unmatchedRoute, method }
}

function findAddress(text: string): string {
  const ip = addressScope(text)
  if (ip === '') throw wrong(`--ip takes an IPv4 or IPv6 address, not ${JSON.stringify(text)}`)
  return ip
}

function onlyNamed(explained: readonly ExplainedLimit[], name: string | undefined, subject: Subject) {
  if (name === undefined) return explained
  const only = explained.filter(({ limit }) => limit.name === name)
  if (only.length > 0) return only
  const near = didYouMean(
    name,
    explained.map(({ limit }) => limit.name),
  )
  throw wrong(`No limit ${JSON.stringify(name)} applies to ${subject.id}${near}`)
}

/** Reads the policy and finds in it what was asked; a CONFIG_INVALID that says what is wrong otherwise. */
export function findAskedLimits(options: LimitOptions): AskedLimits {
  const policy = requirePolicy(readPolicyFile(options.policy), options.policy)
  const subject = findSubject(policy, options)
  const { timeZone, anchor } = subject
  const asked = options.route === undefined ? undefined : findRoute(policy, options.route)
  const scope: AskedScope = {
    ...{ subject: subject.id, timeZone, anchor },
    ...(options.keyId === undefined ? {} : { keyId: options.keyId }),
    ...(options.ip === undefined ? {} : { ip: findAddress(options.ip) }),
    ...(asked === undefined ? {} : { route: asked.route.template, method: asked.method }),
  }
  const explained = explainLimits(policy, subject, asked?.route)
  return { subject, route: asked?.route, limits: onlyNamed(explained, options.limit, subject), scope }
}
