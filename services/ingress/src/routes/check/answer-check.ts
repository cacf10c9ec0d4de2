import type { ServerResponse } from 'node:http'
import { jsonText } from '@weir/contracts/json-text.ts'
import { normalizePath } from '@weir/core/http/normalize-path.ts'
import { settleMsMax } from '@weir/core/limits/check-limit-request.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { shownStates } from '@weir/core/limits/rate-limit-headers.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import { parseDurationMs, subjectRule } from '@weir/policy/policy-values.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import type { DecisionService } from '../../decide/decision-service.ts'
import { onExceedOf } from '../../decide/limits/exceeded.ts'
import type { RecordedDecision } from '../../decide/types.ts'
import { findKey } from '../../http/identity/credential.ts'
import { costUnreadable } from '../../http/read-cost.ts'
import { matchedMethod, recordedMethod } from '../../http/recorded-method.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { Asker } from './check-asker.ts'
import type { CheckBody } from './check-body.ts'
import { whyNotOwn } from './own-check.ts'

/** A check that was decided, or why it could not be asked. */
export type Checked =
  | { readonly kind: 'verdict'; readonly verdict: RecordedDecision }
  | { readonly kind: 'problem'; readonly problem: Problem }

/**
 * What the check API answers as JSON, for both outcomes with status 200. Shadow limits are left out, as in the headers. By a
 * template, in a third of the time of JSON.stringify.
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

/** An answer without a record is 503: to answer the question would say that it is counted. */
export const isUnrecorded = ({ decision }: RecordedDecision): boolean => decision.reason === 'journal_full'

/** What the policy wants done beyond the limit, for whoever asks to do it. */
function beyondText(decision: Decision, limits: readonly Limit[]): string {
  const onExceed = onExceedOf(decision, limits)
  if (onExceed === undefined || onExceed.kind === 'deny') return ''
  const page = onExceed.kind === 'challenge' ? `,"challenge":${jsonText(onExceed.url)}` : ''
  return `,"on_exceed":"${onExceed.kind}"${page}`
}

/** Of such a text; Fastify would call it plain text. */
export const jsonType = 'application/json; charset=utf-8'

/** A malformed check. */
export const badCheck = (detail: string): Problem => ({
  type: problemType('bad-request'),
  title: 'Bad request',
  status: 400,
  detail,
})

/** Longer, and whoever waits has given up. */
const waitMsMax = 60_000

const tooLongToWait = badCheck('wait is a duration of at most 60s, such as 5s.')
const tooLongToSettle = badCheck('settle is a duration of at most 24h, such as 15m.')

const problem = (found: Problem) => ({ kind: 'problem', problem: found }) as const

/** What a check is answered with. */
export interface CheckParts {
  readonly decisionService: DecisionService
  readonly view: PolicyView
  readonly nowMs: number
  /** The answer that a check with `wait` waits for; undefined where none waits. */
  readonly client: ServerResponse | undefined
}

/** Decides one check. Asks the store before it returns: what is called in one turn goes to Redis together. */
export function answerCheck(
  { decisionService, view, nowMs, client }: CheckParts,
  asker: Asker,
  body: CheckBody,
): Checked | Promise<Checked> {
  const matched = matchAsked(view, body)
  if (matched.kind === 'problem') return matched
  const { route, method } = matched
  const isOwn = asker.kind === 'subject'
  const ip = isOwn ? asker.ip : addressScope(body.ip ?? '')
  if (body.ip !== undefined && ip === '') return problem(badCheck('ip must be an IPv4 or IPv6 address.'))
  const who = whoIsAsked(view, asker, body, nowMs)
  if (who.kind === 'problem') return who
  if (who.kind === 'unauthenticated') {
    return decisionService.rejectUnauthenticated({ ip, route, method, retryAfterMs: 0 }).then(decided)
  }
  const notOwn = isOwn ? whyNotOwn(view, asker, body, route) : undefined
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
    idempotencyKey: idempotencyKeyOf(asker, body),
    settleMs,
    isOwnSettlement: isOwn && settleMs !== undefined,
    client: waitMs === undefined ? undefined : client,
    waitMs,
    reauthenticate: isOwn ? asker.reauthenticate : async (live) => renewed(live, who, body, nowMs),
  })
  return verdict.then(decided)
}

/**
 * What a subject admits with its own credential must not be what others repeat about it, charged nothing and settled by the
 * subject: each kind of caller has keys of its own. `gateway ` begins those of `/v1/authorize`.
 */
function idempotencyKeyOf({ kind }: Asker, { idempotency_key: key }: CheckBody): string | undefined {
  if (key === undefined) return undefined
  if (kind === 'subject') return `own ${key}`
  return /^(?:own|token|gateway) /.test(key) ? `token ${key}` : key
}

/** Whom a token's check is about by another policy than the one it came under. */
function renewed(
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

/** A request in the words of the policy: `route` is a path, or a method and a path; `*` is what records say for none. */
function matchAsked({ matchRoute }: PolicyView, body: CheckBody): Matched | ReturnType<typeof problem> {
  const text = body.route ?? ''
  const space = text.indexOf(' ')
  const ofRoute = space === -1 ? '' : text.slice(0, space).toUpperCase()
  const method = (body.method ?? ofRoute).toUpperCase()
  if (ofRoute !== '' && ofRoute !== method) return problem(badCheck('method and the method in route are not the same.'))
  if (ofRoute.length > 32) return problem(badCheck('route is a path, or a method and a path.'))
  const raw = text.slice(space + 1)
  if (raw === '' || raw === '*') return { kind: 'matched', route: unmatchedRoute, method: recordedMethod(method) }
  const path = normalizePath(raw)
  if (path.kind === 'refused')
    return problem(badCheck(`The path in route cannot be read in one way only: it ${path.why}.`))
  const route = matchRoute(matchedMethod(method), path.path) ?? unmatchedRoute
  return { kind: 'matched', route, method: recordedMethod(method) }
}

type Who =
  | { readonly kind: 'subject'; readonly subject: Subject; readonly keyId: string }
  | { readonly kind: 'unauthenticated' }
  | ReturnType<typeof problem>

const ownSubjectOnly: Problem = {
  type: problemType('forbidden'),
  title: 'Forbidden',
  status: 403,
  detail: 'This credential may ask about its own subject only.',
}

/** Whom a question is about. A subject's credential speaks for itself, a token for anybody. */
export function whoIsAsked(
  { policy }: PolicyView,
  asker: Asker,
  { subject: id, key: text }: Pick<CheckBody, 'subject' | 'key'>,
  nowMs: number,
): Who {
  if (asker.kind === 'subject') {
    return text !== undefined || (id !== undefined && id !== asker.subject.id) ? problem(ownSubjectOnly) : asker
  }
  if (text !== undefined && id !== undefined) return problem(badCheck('Give subject or key, not both.'))
  if (text !== undefined) {
    const key = findKey(policy, text, nowMs)
    return key === undefined ? { kind: 'unauthenticated' } : { kind: 'subject', subject: key.subject, keyId: key.id }
  }
  if (id === undefined) return problem(badCheck('Give subject or key.'))
  const subject = subjectNamed(policy, id)
  if (subject !== undefined) return { kind: 'subject', subject, keyId: '' }
  const isNone = policy.identity.unknownPlan === undefined
  const why = `The policy has no subject ${JSON.stringify(id)}`
  return problem(badCheck(isNone ? `${why}.` : `${why}, and it is no name for one: ${subjectRule}.`))
}
