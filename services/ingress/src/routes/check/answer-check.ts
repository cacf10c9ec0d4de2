import type { ServerResponse } from 'node:http'
import { jsonText } from '@weir/contracts/json-text.ts'
import { normalizePath } from '@weir/core/http/normalize-path.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { settleMsMax } from '@weir/core/limits/limit-store.ts'
import { shownStates } from '@weir/core/limits/rate-limit-headers.ts'
import { findKey } from '@weir/identity/credential.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import { parseDurationMs, subjectRule } from '@weir/policy/policy-values.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { DecisionService } from '../../decide/decision-service.ts'
import { onExceedOf } from '../../decide/limits/exceeded.ts'
import type { RecordedDecision } from '../../decide/types.ts'
import { costUnreadable } from '../../http/read-cost.ts'
import { matchedMethod, recordedMethod } from '../../http/recorded-method.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { CheckPrincipal } from './authorize-caller.ts'
import type { CheckBody } from './check-body.ts'
import { forbidden, whyNotOwn } from './own-check.ts'

/** A check that was decided, or why it could not be asked. */
export type Checked =
  | { readonly kind: 'verdict'; readonly verdict: RecordedDecision }
  | { readonly kind: 'problem'; readonly problem: Problem }

/**
 * What the check API answers as JSON, for both outcomes with status 200. Shadow limits are left out, as in the headers.
 * By a template, in a third of the time of JSON.stringify.
 */
export function verdictText({ id, decision, limits = [] }: RecordedDecision): string {
  const { allowed, reason, deniedBy, retryAfterMs } = decision
  let states = ''
  for (const { name, size, used, remaining, resetMs } of shownStates(decision, limits)) {
    states += `${states === '' ? '' : ','}{"name":${jsonText(name)},"size":${size},"used":${used},"remaining":${remaining},"reset_ms":${resetMs}}`
  }
  const beyond = deniedBy === '' ? '' : beyondText(decision, limits)
  return `{"id":${id === undefined ? 'null' : `"${id}"`},"allowed":${allowed},"reason":"${reason}","denied_by":${jsonText(deniedBy)},"retry_after_ms":${retryAfterMs}${beyond},"limits":[${states}]}`
}

/** A decision without a record is answered with 503: any other answer would mean that it is counted. */
export const isUnrecorded = ({ decision }: RecordedDecision): boolean => decision.reason === 'journal_full'

/** What the policy wants done beyond the limit, for the caller to do. */
function beyondText(decision: Decision, limits: readonly Limit[]): string {
  const onExceed = onExceedOf(decision, limits)
  if (onExceed === undefined || onExceed.kind === 'deny') return ''
  const page = onExceed.kind === 'challenge' ? `,"challenge":${jsonText(onExceed.url)}` : ''
  return `,"on_exceed":"${onExceed.kind}"${page}`
}

/** The media type of such a text; Fastify would call it plain text. */
export const jsonType = 'application/json; charset=utf-8'

/** After a longer wait the caller has given up. */
const waitMsMax = 60_000

const tooLongToWait = badRequest('wait is a duration of at most 60s, such as 5s.')
const tooLongToSettle = badRequest('settle is a duration of at most 24h, such as 15m.')

const problem = (found: Problem) => ({ kind: 'problem', problem: found }) as const

/** What a check is decided with. */
export interface CheckParts {
  readonly decisionService: DecisionService
  readonly view: PolicyView
  readonly nowMs: number
  /** The answer that a check with `wait` waits for; undefined where checks do not wait. */
  readonly client: ServerResponse | undefined
}

/** Decides one check. It calls the store before it returns, so that all checks of one tick go to Redis together. */
export function answerCheck(
  { decisionService, view, nowMs, client }: CheckParts,
  principal: CheckPrincipal,
  body: CheckBody,
): Checked | Promise<Checked> {
  const matched = matchAsked(view, body)
  if (matched.kind === 'problem') return matched
  const { route, method } = matched
  const isOwn = principal.kind === 'subject'
  const ip = isOwn ? principal.ip : addressScope(body.ip ?? '')
  if (body.ip !== undefined && ip === '') return problem(badRequest('ip must be an IPv4 or IPv6 address.'))
  const who = checkedSubject(view, principal, body, nowMs)
  if (who.kind === 'problem') return who
  if (who.kind === 'unauthenticated') {
    return decisionService.rejectUnauthenticated({ ip, route, method, retryAfterMs: 0 }).then(decided)
  }
  const notOwn = isOwn ? whyNotOwn(view, principal, body, route) : undefined
  if (notOwn !== undefined) return problem(notOwn)
  if (body.cost === undefined && route.costFrom !== undefined) return problem(costMissing(route))
  const settleMs = body.settle === undefined ? undefined : parseDurationMs(body.settle)
  if (body.settle !== undefined && (settleMs === undefined || settleMs > settleMsMax)) return problem(tooLongToSettle)
  const waitMs = body.wait === undefined ? undefined : parseDurationMs(body.wait)
  if (body.wait !== undefined && (waitMs === undefined || waitMs > waitMsMax)) return problem(tooLongToWait)
  const verdict = decisionService.decide({
    ...{ view, ip, route, method, subject: who.subject, keyId: who.keyId },
    cost: body.cost ?? route.cost,
    peek: body.peek ?? false,
    named: view.attributeScopes(body.attributes ?? {}),
    idempotencyKey: idempotencyKeyOf(principal, body),
    settleMs,
    isOwnSettlement: isOwn && settleMs !== undefined,
    client: waitMs === undefined ? undefined : client,
    waitMs,
    reauthenticate: isOwn ? principal.reauthenticate : async (live) => reauthenticated(live, who, body, nowMs),
  })
  return verdict.then(decided)
}

/**
 * Gives each kind of caller idempotency keys of its own: an admission that a subject got with its own credential must
 * not be repeated for others, who would be charged nothing. `gateway ` begins the keys of `/v1/authorize`.
 */
function idempotencyKeyOf({ kind }: CheckPrincipal, { idempotency_key: key }: CheckBody): string | undefined {
  if (key === undefined) return undefined
  if (kind === 'subject') return `own ${key}`
  return /^(?:own|token|gateway) /.test(key) ? `token ${key}` : key
}

/** The subject of a token's check by another policy than the one that the check came under. */
function reauthenticated(
  live: PolicyView,
  { subject: before, keyId }: { readonly subject: Subject; readonly keyId: string },
  body: CheckBody,
  nowMs: number,
) {
  const key = body.key === undefined ? undefined : findKey(live.policy, body.key, nowMs)
  if (body.key !== undefined) return key === undefined ? undefined : { subject: key.subject, keyId: key.id }
  const subject = subjectNamed(live.policy, before.id)
  return subject === undefined ? undefined : { subject, keyId }
}

const decided = (verdict: RecordedDecision) => ({ kind: 'verdict', verdict }) as const

const costMissing = ({ template }: Route) =>
  costUnreadable(`Requests to ${template} say themselves what they cost; a check of it must give cost.`)

type Matched = { readonly kind: 'matched'; readonly route: Route; readonly method: string }

/** Finds route and method of a check: `route` is a path, or a method and a path; records have `*` for none. */
function matchAsked({ matchRoute }: PolicyView, body: CheckBody): Matched | ReturnType<typeof problem> {
  const text = body.route ?? ''
  const space = text.indexOf(' ')
  const ofRoute = space === -1 ? '' : text.slice(0, space).toUpperCase()
  const method = (body.method ?? ofRoute).toUpperCase()
  if (ofRoute !== '' && ofRoute !== method)
    return problem(badRequest('method and the method in route are not the same.'))
  if (ofRoute.length > 32) return problem(badRequest('route is a path, or a method and a path.'))
  const raw = text.slice(space + 1)
  if (raw === '' || raw === '*') return { kind: 'matched', route: unmatchedRoute, method: recordedMethod(method) }
  const path = normalizePath(raw)
  if (path.kind === 'refused')
    return problem(badRequest(`The path in route cannot be read in one way only: it ${path.why}.`))
  const route = matchRoute(matchedMethod(method), path.path) ?? unmatchedRoute
  return { kind: 'matched', route, method: recordedMethod(method) }
}

type CheckedSubject =
  | { readonly kind: 'subject'; readonly subject: Subject; readonly keyId: string }
  | { readonly kind: 'unauthenticated' }
  | ReturnType<typeof problem>

const ownSubjectOnly = forbidden('This credential may ask about its own subject only.')

/** The subject that a check is about. A subject's credential checks that subject, a token any. */
export function checkedSubject(
  { policy }: PolicyView,
  principal: CheckPrincipal,
  { subject: id, key: text }: Pick<CheckBody, 'subject' | 'key'>,
  nowMs: number,
): CheckedSubject {
  if (principal.kind === 'subject') {
    return text !== undefined || (id !== undefined && id !== principal.subject.id) ? problem(ownSubjectOnly) : principal
  }
  if (text !== undefined && id !== undefined) return problem(badRequest('Give subject or key, not both.'))
  if (text !== undefined) {
    const key = findKey(policy, text, nowMs)
    return key === undefined ? { kind: 'unauthenticated' } : { kind: 'subject', subject: key.subject, keyId: key.id }
  }
  if (id === undefined) return problem(badRequest('Give subject or key.'))
  const subject = subjectNamed(policy, id)
  if (subject !== undefined) return { kind: 'subject', subject, keyId: '' }
  const isNone = policy.identity.unknownPlan === undefined
  const why = `The policy has no subject ${JSON.stringify(id)}`
  return problem(badRequest(isNone ? `${why}.` : `${why}, and it is no name for one: ${subjectRule}.`))
}
