import { normalizePath } from '@weir/core/http/normalize-path.ts'
import { findKey } from '@weir/identity/credential.ts'
import { anonymousSubject, unnamedSubject } from '@weir/identity/named-subject.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import { noPlan, type Route, type Subject } from '@weir/policy/policy.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { matchedMethod, recordedMethod } from '../http/recorded-method.ts'
import type { PolicyView } from '../policy-view.ts'

/** The subject that a gateway asks about, and its request. */
export type ResolvedTarget =
  | {
      readonly kind: 'named'
      readonly subject: Subject
      readonly keyId: string
      readonly ip: string
      readonly route: Route
      readonly method: string
    }
  /** A key or a subject that the policy does not have. */
  | { readonly kind: 'unauthenticated'; readonly ip: string; readonly route: Route; readonly method: string }
  /** A path with two meanings, which no entry point accepts. */
  | { readonly kind: 'refused'; readonly detail: string }

/** The target in a domain of routes for descriptors: the address may be known, but no subject is named. */
export function unnamedTarget(domain: string, entries: ReadonlyMap<string, string>, route: Route): ResolvedTarget {
  const ip = addressScope(entries.get('remote_address') ?? '')
  const subject = ip === '' ? unnamedSubject(domain) : anonymousSubject(ip, noPlan)
  return { kind: 'named', subject, keyId: '', ip, route, method: '' }
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
  const ip = addressScope(entries.get('remote_address') ?? '')
  const method = (entries.get('method') ?? '').toUpperCase()
  const path = entries.get('path')
  const normal = path === undefined ? undefined : normalizePath(path.split('?', 1)[0] ?? '')
  if (normal?.kind === 'refused') return { kind: 'refused', detail: `The path ${normal.why}.` }
  const route = (normal === undefined ? undefined : matchRoute(matchedMethod(method), normal.path)) ?? unmatchedRoute
  const asked = { ip, route, method: recordedMethod(method) }
  const [key, id] = [entries.get('key'), entries.get('subject')]
  if (key !== undefined) {
    const found = findKey(policy, key.replace(/^bearer /i, '').trim(), nowMs)
    if (found === undefined || (id !== undefined && id !== found.subject.id))
      return { kind: 'unauthenticated', ...asked }
    return { kind: 'named', subject: found.subject, keyId: found.id, ...asked }
  }
  if (id !== undefined) {
    const subject = subjectNamed(policy, id)
    return subject === undefined
      ? { kind: 'unauthenticated', ...asked }
      : { kind: 'named', subject, keyId: '', ...asked }
  }
  const subject = ip === '' ? unnamedSubject(domain) : anonymousSubject(ip, policy.identity.anonymousPlan ?? noPlan)
  return { kind: 'named', subject, keyId: '', ...asked }
}
