import { normalizePath } from '@weir/core/http/normalize-path.ts'
import { findKey } from '@weir/identity/credential.ts'
import { anonymousSubject, unnamedSubject } from '@weir/identity/named-subject.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import { noPlan, type Plan, type Route, type Subject } from '@weir/policy/policy.ts'
import { networkScope } from '@weir/runtime/address-scope.ts'
import { matchedMethod, recordedMethod } from '../http/recorded-method.ts'
import type { PolicyView } from '../policy-view.ts'

/** The request that a gateway asks about. */
interface Target {
  readonly ip: string
  readonly route: Route
  readonly method: string
  /** In its normal form; undefined where the gateway names none. */
  readonly path?: string | undefined
}

/** The subject that a gateway asks about, and its request. */
export type ResolvedTarget =
  | (Target & { readonly kind: 'named'; readonly subject: Subject; readonly keyId: string })
  /** A key or a subject that the policy does not have. */
  | (Target & { readonly kind: 'unauthenticated' })
  /** A path with two meanings, which no entry point accepts. */
  | { readonly kind: 'refused'; readonly detail: string }

/** The target in a domain of routes for descriptors: the address may be known, but no subject is named. */
export function unnamedTarget(
  { policy }: PolicyView,
  domain: string,
  entries: ReadonlyMap<string, string>,
  route: Route,
): ResolvedTarget {
  const ip = networkScope(entries.get('remote_address') ?? '', policy.identity.ipv6Prefix)
  return { kind: 'named', subject: subjectAt(domain, ip, noPlan), keyId: '', ip, route, method: '' }
}

/**
 * Resolves entries in a domain without routes: `subject` or `key` name a subject of the policy, `remote_address` an
 * address, `method` and `path` the request. A target without subject and address counts under the domain.
 */
export function resolveSubject(
  { policy, matchRoute }: PolicyView,
  domain: string,
  entries: ReadonlyMap<string, string>,
  nowMs: number,
): ResolvedTarget {
  const ip = networkScope(entries.get('remote_address') ?? '', policy.identity.ipv6Prefix)
  const method = (entries.get('method') ?? '').toUpperCase()
  const path = entries.get('path')
  const normal = path === undefined ? undefined : normalizePath(path.split('?', 1)[0] ?? '')
  if (normal?.kind === 'refused') return { kind: 'refused', detail: `The path ${normal.why}.` }
  const route = (normal === undefined ? undefined : matchRoute(matchedMethod(method), normal.path)) ?? unmatchedRoute
  const asked = { ip, route, method: recordedMethod(method), path: normal?.path }
  const [key, id] = [entries.get('key'), entries.get('subject')]
  if (key === undefined && id === undefined) {
    const subject = subjectAt(domain, ip, policy.identity.anonymousPlan ?? noPlan)
    return { kind: 'named', subject, keyId: '', ...asked }
  }
  const found = key === undefined ? undefined : findKey(policy, key.replace(/^bearer /i, '').trim(), nowMs)
  const subject = key === undefined ? subjectNamed(policy, id ?? '') : found?.subject
  const isOther = key !== undefined && id !== undefined && id !== subject?.id
  if (subject === undefined || isOther) return { kind: 'unauthenticated', ...asked }
  return { kind: 'named', subject, keyId: found?.id ?? '', ...asked }
}

/** The subject of a request that names none: its address, or the gateway's domain. */
const subjectAt = (domain: string, ip: string, plan: Plan): Subject =>
  ip === '' ? unnamedSubject(domain) : anonymousSubject(ip, plan)
