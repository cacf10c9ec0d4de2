import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { CheckBody } from '@weir/api/check.ts'
import { normalizePath } from '@weir/core/http/normalize-path.ts'
import { isShared } from '@weir/core/limits/limit.ts'
import type { NamedValues } from '@weir/core/limits/limit-store.ts'
import { costOf, settleMsMax } from '@weir/core/limits/limit-store.ts'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import type { DecisionView } from '@weir/decide/decision-view.ts'
import type { DecisionRequest, RecordedDecision, UnauthenticatedRequest } from '@weir/decide/types.ts'
import { findKey } from '@weir/identity/credential.ts'
import { canonicalJson, type JsonObject } from '@weir/policy/entities.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import { parseDurationMs, subjectRule } from '@weir/policy/policy-values.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'
import { valuesOfJson } from '../../http/body-scopes.ts'
import { isProblem } from '../../http/decision-reply.ts'
import { costUnreadable } from '../../http/read-cost.ts'
import { matchedMethod, recordedMethod } from '../../http/recorded-method.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { RequestTrace } from '../../trace/request-trace.ts'
import type { CheckPrincipal } from './authorize-caller.ts'
import { unitsProblem } from './check-body.ts'

/** A check that was decided, or why it could not be asked. */
export type Checked = RecordedDecision | Problem

/** The refusal of what a valid credential may not do. */
export const forbidden = (detail: string): Problem => problem('forbidden', 'Forbidden', 403, detail)

/** After a longer wait the caller has given up. */
const waitMsMax = 60_000

const tooLongToWait = badRequest('wait must be a duration of at most 60s, such as 5s.')
const tooLongToSettle = badRequest('settle must be a duration of at most 24h, such as 15m.')

/** What a check is decided with. */
export interface CheckParts {
  readonly decisionService: DecisionService
  readonly entryPoint: 'check' | 'batch'
  /** As in `DecisionRequest`. */
  readonly startedAt: number
  readonly view: PolicyView
  readonly principal: CheckPrincipal
  readonly nowMs: number
  /** The answer that a check with `wait` waits for; undefined where checks do not wait. */
  readonly client: ServerResponse | undefined
  /** Of the request, which may hold many checks. */
  readonly trace: RequestTrace | undefined
}

/** Decides one check. It calls the store before it returns, so that all checks of one tick go to Redis together. */
export function answerCheck(parts: CheckParts, body: CheckBody): Checked | Promise<Checked> {
  const { decisionService } = parts
  const asked = askedIn(parts, body)
  if (isProblem(asked)) return asked
  if ('retryAfterMs' in asked) return decisionService.rejectUnauthenticated(asked)
  const decided = decisionService.decide(asked)
  if (asked.idempotencyKey === undefined) return decided
  return decided.then((recorded) => (recorded.decision.isOtherQuestion === true ? otherQuestion : recorded))
}

/** What a check asks; a problem where it cannot be asked, and without a valid key whom to refuse. */
export function askedIn(
  { entryPoint, startedAt, view, principal, nowMs, client, trace }: CheckParts,
  body: CheckBody,
): DecisionRequest | UnauthenticatedRequest | Problem {
  const matched = matchAsked(view, body)
  if (isProblem(matched)) return matched
  const { route, method, path } = matched
  const isOwn = principal.kind === 'subject'
  const ip = isOwn ? principal.ip : addressScope(body.ip ?? '', view.policy.identity.ipv6Prefix)
  if (body.ip !== undefined && ip === '') return badRequest('ip must be an IPv4 or IPv6 address.')
  const who = checkedSubject(view, principal, body, nowMs)
  const asked = { entryPoint, startedAt, ip, route, method, trace: trace?.decision() }
  if (who === 'unauthenticated') return { ...asked, retryAfterMs: 0 }
  if (isProblem(who)) return who
  const notOwn = isOwn ? whyNotOwn(view, principal, body, route) : undefined
  if (notOwn !== undefined) return notOwn
  if (body.cost === undefined && route.costFrom !== undefined) return costMissing(route)
  const wrongUnits = unitsProblem(view.policy, body.units)
  if (wrongUnits !== undefined) return wrongUnits
  const settleMs = body.settle === undefined ? undefined : parseDurationMs(body.settle)
  if (body.settle !== undefined && (settleMs === undefined || settleMs > settleMsMax)) return tooLongToSettle
  const waitMs = body.wait === undefined ? undefined : parseDurationMs(body.wait)
  if (body.wait !== undefined && (waitMs === undefined || waitMs > waitMsMax)) return tooLongToWait
  const pointers = body.body === undefined ? undefined : view.bodyPointers(who.subject, route)
  const claims = isOwn ? principal.claims : undefined
  const ofBody = pointers === undefined ? undefined : valuesOfJson(body.body, pointers)
  const idempotencyKey = idempotencyKeyOf(principal, body)
  const named = view.readScopes({ route, path, attributes: body.attributes, claims, body: ofBody })
  return {
    ...asked,
    view,
    subject: who.subject,
    keyId: who.keyId,
    cost: body.cost ?? route.cost,
    units: body.units && new Map(Object.entries(body.units)),
    peek: body.peek ?? false,
    named,
    idempotencyKey,
    fingerprint: idempotencyKey === undefined ? undefined : fingerprintOf(body, named),
    settleMs,
    isOwnSettlement: isOwn && settleMs !== undefined,
    client: waitMs === undefined ? undefined : client,
    waitMs,
    reauthenticate: isOwn ? principal.reauthenticate : async (live) => reauthenticated(live, who, body, nowMs),
  }
}

const otherQuestion = problem(
  'idempotency-key-reused',
  'Idempotency key reused',
  422,
  'Something else was asked under this idempotency_key. Ask with a key of its own; nothing was charged now.',
)

/**
 * What a check asks, of its body what limits count by. A retry may come from another address, name its subject by a
 * key, and wait for longer.
 */
function fingerprintOf(
  { route, method, cost, units, attributes, settle }: CheckBody,
  named: NamedValues = new Map(),
): string {
  const body = [...named].filter(([scope]) => scope.startsWith('body:'))
  const asked = canonicalJson({ route, method, cost, ...(units && { units }), attributes, settle, body } as JsonObject)
  return hash('sha256', asked, 'base64url').slice(0, 12)
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
  live: DecisionView,
  { subject: before, keyId }: CheckedSubject,
  body: CheckBody,
  nowMs: number,
) {
  const key = body.key === undefined ? undefined : findKey(live.policy, body.key, nowMs)
  if (body.key !== undefined) return key && { subject: key.subject, keyId: key.id }
  const subject = subjectNamed(live.policy, before.id)
  return subject && { subject, keyId }
}

const costMissing = ({ template }: Route) =>
  costUnreadable(`Requests to ${template} say themselves what they cost; a check of it must give cost.`)

/** Finds route and method of a check: `route` is a path, or a method and a path; records have `*` for none. */
function matchAsked(
  { matchRoute }: PolicyView,
  body: CheckBody,
): { readonly route: Route; readonly method: string; readonly path?: string } | Problem {
  const text = body.route ?? ''
  const space = text.indexOf(' ')
  const ofRoute = space === -1 ? '' : text.slice(0, space).toUpperCase()
  const method = (body.method ?? ofRoute).toUpperCase()
  if (ofRoute !== '' && ofRoute !== method) return badRequest('method and the method in route differ.')
  if (ofRoute.length > 32) return badRequest('route must be a path, or a method and a path.')
  const raw = text.slice(space + 1)
  if (raw === '' || raw === '*') return { route: unmatchedRoute, method: recordedMethod(method) }
  const path = normalizePath(raw)
  if (path.kind === 'refused') return badRequest(`The path in route is ambiguous: it ${path.why}.`)
  const route = matchRoute(matchedMethod(method), path.path) ?? unmatchedRoute
  return { route, method: recordedMethod(method), path: path.path }
}

/** A subject, and the key that it was named by; an empty id without one. */
interface CheckedSubject {
  readonly subject: Subject
  readonly keyId: string
}

const ownSubjectOnly = forbidden('This credential may only check its own subject.')

/** The subject that a check is about. A subject's credential checks that subject, a token any. */
export function checkedSubject(
  { policy }: Pick<DecisionView, 'policy'>,
  principal: CheckPrincipal,
  { subject: id, key: text }: Pick<CheckBody, 'subject' | 'key'>,
  nowMs: number,
): CheckedSubject | 'unauthenticated' | Problem {
  if (principal.kind === 'subject') {
    return text !== undefined || (id !== undefined && id !== principal.subject.id) ? ownSubjectOnly : principal
  }
  if (text !== undefined && id !== undefined) return badRequest('Send either subject or key.')
  if (text !== undefined) {
    const key = findKey(policy, text, nowMs)
    return key === undefined ? 'unauthenticated' : { subject: key.subject, keyId: key.id }
  }
  if (id === undefined) return badRequest('Give subject or key.')
  const subject = subjectNamed(policy, id)
  if (subject !== undefined) return { subject, keyId: '' }
  const isNone = policy.identity.unknownPlan === undefined
  const why = `The policy has no subject ${JSON.stringify(id)}`
  return badRequest(isNone ? `${why}.` : `${why}, and this is not a valid subject id: ${subjectRule}.`)
}

const needsToken = (detail: string) => forbidden(`${detail}, or use a token with the \`check\` scope.`)

const otherOrigin = needsToken(
  "A subject's own credential asks from the address of its connection, and without attributes or a body: leave out ip, attributes and body",
)
const costTooLow = (cost: number) =>
  needsToken(
    `A subject's own credential asks for what the route costs at least: give a cost of ${cost} or leave it out`,
  )
const costShared = needsToken(
  'Others share a limit of this check, so a subject does not ask for more than the route costs: leave out cost',
)
const costTooHigh = needsToken('The cost exceeds the size of a limit on this check: send a lower cost')

/**
 * The reason why a subject may not check this with its own credential; undefined if it may. A check must not count at
 * an address or an attribute that is not the caller's, and one large cost must not use up what other subjects share. A
 * peek charges nothing, so that it may have any cost.
 */
function whyNotOwn(
  { resolveLimits, resolveWithoutAddress }: DecisionView,
  { subject, ip }: Extract<CheckPrincipal, { readonly kind: 'subject' }>,
  body: CheckBody,
  route: Route,
): Problem | undefined {
  if (body.ip !== undefined || body.attributes !== undefined || body.body !== undefined) return otherOrigin
  const { cost = route.cost, units = {}, peek = false } = body
  if (peek || (cost === route.cost && body.units === undefined)) return undefined
  if (cost < route.cost) return costTooLow(route.cost)
  const asked = { cost, units: new Map(Object.entries(units)) }
  const limits = (ip === '' ? resolveWithoutAddress : resolveLimits)(subject, route)
  if (limits.some(isShared)) return costShared
  return limits.some((limit) => costOf(limit, asked) > limit.capacity) ? costTooHigh : undefined
}
