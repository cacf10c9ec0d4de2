import { shownStates } from '@weir/core/limits/rate-limit-headers.ts'
import { unmatchedRoute } from '@weir/core/policy/match-route.ts'
import type { Policy, Route } from '@weir/core/policy/policy.ts'
import { addressScope } from '@weir/runtime/address-scope.ts'
import { createAdminCheck, fingerprint } from '@weir/runtime/admin-token.ts'
import { type Problem, problemType, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import type { Gate, Verdict } from '../gate.ts'
import { findKey, readCredential } from '../http/identify.ts'
import { denialProblem, setVerdictHeaders } from '../http/verdict-reply.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'

/** Body of `POST /v1/check`, as it comes over the wire. */
interface CheckBody {
  readonly subject?: string
  readonly key?: string
  readonly ip?: string
  readonly route?: string
  readonly method?: string
  readonly cost?: number
  readonly peek?: boolean
  readonly attributes?: Readonly<Record<string, string | number>>
  readonly idempotency_key?: string
}

const bodySchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    subject: { type: 'string', minLength: 1, maxLength: 256 },
    key: { type: 'string', minLength: 1, maxLength: 256 },
    ip: { type: 'string', maxLength: 64 },
    route: { type: 'string', maxLength: 2_048 },
    method: { type: 'string', maxLength: 32 },
    cost: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    peek: { type: 'boolean' },
    attributes: {
      type: 'object',
      maxProperties: 32,
      propertyNames: { minLength: 1, maxLength: 64 },
      additionalProperties: { anyOf: [{ type: 'string', maxLength: 256 }, { type: 'number' }] },
    },
    idempotency_key: { type: 'string', minLength: 1, maxLength: 256 },
  },
}

/** What the check API answers, for both outcomes with status 200. Shadow limits are left out, as in the headers. */
function replyBody({ id, decision, limits = [] }: Verdict) {
  return {
    id: id ?? null,
    allowed: decision.allowed,
    reason: decision.reason,
    denied_by: decision.deniedBy,
    retry_after_ms: decision.retryAfterMs,
    limits: shownStates(decision, limits).map(({ name, size, used, remaining, resetMs }) => ({
      name,
      size,
      used,
      remaining,
      reset_ms: resetMs,
    })),
  }
}

const bad = (detail: string, status = 400): Problem => ({
  type: problemType('bad-request'),
  title: 'Bad request',
  status,
  detail,
})

/** A request in the words of the policy: `route` is a path, or a method and a path. */
function matchAsked({ matchRoute }: PolicyView, body: CheckBody): { route: Route; method: string } {
  const words = (body.route ?? '').split(' ')
  const path = words.at(-1) ?? ''
  const method = (body.method ?? (words.length > 1 ? words[0] : '') ?? '').toUpperCase()
  return { route: matchRoute(method, path) ?? unmatchedRoute, method }
}

type Who =
  | {
      readonly kind: 'subject'
      readonly subject: NonNullable<ReturnType<Policy['subjects']['get']>>
      readonly keyId: string
    }
  | { readonly kind: 'stranger' }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** Whom the check is about. A subject's key speaks for itself; the admin token for anybody. */
function whoIsAsked(policy: Policy, body: CheckBody, caller: ReturnType<typeof findKey>, nowMs: number): Who {
  if (caller !== undefined) {
    const other = body.key !== undefined || (body.subject !== undefined && body.subject !== caller.subject.id)
    if (other)
      return {
        kind: 'problem',
        problem: {
          ...bad('This key may check its own subject only.', 403),
          title: 'Forbidden',
          type: problemType('forbidden'),
        },
      }
    return { kind: 'subject', subject: caller.subject, keyId: caller.id }
  }
  if (body.key !== undefined && body.subject !== undefined) {
    return { kind: 'problem', problem: bad('Give subject or key, not both.') }
  }
  if (body.key !== undefined) {
    const key = findKey(policy, body.key, nowMs)
    return key === undefined ? { kind: 'stranger' } : { kind: 'subject', subject: key.subject, keyId: key.id }
  }
  const subject = policy.subjects.get(body.subject ?? '')
  if (subject !== undefined) return { kind: 'subject', subject, keyId: '' }
  const detail =
    body.subject === undefined ? 'Give subject or key.' : `The policy has no subject ${JSON.stringify(body.subject)}.`
  return { kind: 'problem', problem: bad(detail) }
}

/** `POST /v1/check`: a decision without a proxied request. */
export function addCheckRoute(
  app: FastifyInstance,
  ports: Ports,
  gate: Gate,
  adminTokenSha256: string | undefined,
): void {
  const isAdmin = createAdminCheck(adminTokenSha256)

  app.post<{ Body: CheckBody }>('/v1/check', { schema: { body: bodySchema } }, async (request, reply) => {
    const { body } = request
    const { view } = ports.policy
    const { policy } = view
    const text = readCredential(request.headers)?.key ?? ''
    const nowMs = ports.clock.nowMs()
    const caller = findKey(policy, text, nowMs)
    const asked = { ...matchAsked(view, body), ip: addressScope(body.ip ?? '') }
    if (caller === undefined && !isAdmin(fingerprint(text))) {
      const verdict = gate.refuseStranger({ ...asked, retryAfterMs: 0 })
      setVerdictHeaders(reply, verdict)
      return sendProblem(reply, denialProblem(reply, verdict))
    }
    if (body.ip !== undefined && asked.ip === '') return sendProblem(reply, bad('ip must be an IPv4 or IPv6 address.'))
    const who = whoIsAsked(policy, body, caller, nowMs)
    if (who.kind === 'problem') return sendProblem(reply, who.problem)
    const cost = body.cost ?? asked.route.cost
    const verdict =
      who.kind === 'stranger'
        ? gate.refuseStranger({ ...asked, retryAfterMs: 0 })
        : await gate.decide({
            ...{ ...asked, view, subject: who.subject, keyId: who.keyId, cost, peek: body.peek ?? false },
            named: view.attributeScopes(body.attributes ?? {}),
            idempotencyKey: body.idempotency_key,
          })
    setVerdictHeaders(reply, verdict)
    return reply.send(replyBody(verdict))
  })
}
