import { normalizePath } from '@weir/core/http/normalize-path.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import { noPlan, type Route, type Subject } from '@weir/policy/policy.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { findKey } from '../http/identity/credential.ts'
import { anonymousSubject, unnamedSubject } from '../http/identity/named-subject.ts'
import { matchedMethod, recordedMethod } from '../http/recorded-method.ts'
import type { PolicyView } from '../policy-view.ts'

/** Whom a gateway asks about, and what for. */
export type Named =
  | {
      readonly kind: 'named'
      readonly subject: Subject
      readonly keyId: string
      readonly ip: string
      readonly route: Route
      readonly method: string
    }
  /** A key or a subject that is nobody's. */
  | { readonly kind: 'unauthenticated'; readonly ip: string; readonly route: Route; readonly method: string }
  /** A path of two meanings, which no door takes. */
  | { readonly kind: 'refused'; readonly detail: string }

/** A domain of routes for descriptors: the address may be known, but nobody is named. */
export function nobodyNamed(domain: string, entries: ReadonlyMap<string, string>, route: Route): Named {
  const ip = addressScope(entries.get('remote_address') ?? '')
  const subject = ip === '' ? unnamedSubject(domain) : anonymousSubject(ip, noPlan)
  return { kind: 'named', subject, keyId: '', ip, route, method: '' }
}

/**
 * What entries mean in a domain without routes: `subject` or `key` name a subject of the policy, `remote_address` an address, `method`
 * and `path` the request. Who is neither a subject nor an address is counted under the domain.
 */
export function whoIsNamed(
  { policy, matchRoute }: PolicyView,
  domain: string,
  entries: ReadonlyMap<string, string>,
  nowMs: number,
): Named {
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
