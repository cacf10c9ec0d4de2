import { createPortalToken, endPortalTokens } from '@weir/api/access.ts'
import { createPortalTokens } from '@weir/identity/portal-tokens.ts'
import { deleteEntity, putEntity } from '@weir/policy/entities.ts'
import { mayBeSubject } from '@weir/policy/named-subject.ts'
import { parseDurationMs, parseTimeMs } from '@weir/policy/policy-values.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, portalUnavailable } from '../http/problems.ts'
import { servePolicy } from '../http/serve.ts'
import { serveChange } from '../policy/answer-change.ts'
import { noEntity } from '../policy/entities.ts'
import type { Sources } from '../sources.ts'

const minuteMs = 60_000
const [shortestMs, longestMs] = [5 * minuteMs, 7 * 24 * 60 * minuteMs]
const usualMs = 60 * minuteMs
/** Clocks of consoles differ by less; until then an entry is kept although no token that it refuses is valid. */
const clockSlackMs = 24 * 60 * minuteMs

/**
 * Ends every token that was made until now. A token is refused unless it was made after the entry that stands there,
 * which it names: no clock decides. Entries of others are deleted once every token that they refuse has ended itself.
 */
function planEnd(state: PolicyState, subject: string, nowMs: number): ChangePlan<undefined> {
  if (!mayBeSubject(state.policy, subject)) return reject(noEntity(state, 'subject', subject))
  const before = parseTimeMs(state.policy.portals.get(subject) ?? '') ?? 0
  const notBefore = new Date(Math.max(nowMs, before + 1)).toISOString()
  const isOver = (text: string) => (parseTimeMs(text) ?? 0) < nowMs - longestMs - clockSlackMs
  const over = [...state.policy.portals].filter(
    ([other, text]) => other !== subject && isOver(text) && state.get('portal', other)?.origin === 'admin',
  )
  const entity = { kind: 'portal', name: subject, origin: 'admin', position: undefined, body: { notBefore } } as const
  return {
    kind: 'change',
    changes: [putEntity(entity), ...over.map(([other]) => deleteEntity('portal', other))],
    lines: [{ what: 'revoke', kind: 'portal', name: subject }],
    answer: undefined,
  }
}

/** `POST` and `DELETE /v1/subjects/{id}/portal`: tokens with which a customer reads its own usage for a while. */
export function registerPortal(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const { clock, access } = sources
  const tokens = createPortalTokens(access.portalKey)
  servePolicy(app, sources, createPortalToken, async (state, { params: { id }, body, by, log }, reply) => {
    if (!mayBeSubject(state.policy, id)) return answerProblem(reply, noEntity(state, 'subject', id))
    const lengthMs = body?.expires_in === undefined ? usualMs : parseDurationMs(body.expires_in)
    if (lengthMs === undefined || lengthMs < shortestMs || lengthMs > longestMs) {
      return answerProblem(reply, badRequest('expires_in must be a duration from 5m to 7d, such as 1h'))
    }
    const nowMs = clock.nowMs()
    const untilMs = Math.ceil((nowMs + lengthMs) / 1_000) * 1_000
    const after = state.policy.portals.get(id) ?? ''
    const token = await tokens.sign({ subject: id, after }, nowMs, untilMs)
    if (token === undefined) return answerProblem(reply, portalUnavailable)
    log.info({ by, subject: id, until: new Date(untilMs).toISOString() }, 'portal token created')
    reply.code(201).header('cache-control', 'no-store')
    const { publicUrl } = access
    const link = publicUrl === undefined ? null : `${publicUrl.origin}/me#${token}`
    return { subject: id, token, link, expires_at: new Date(untilMs).toISOString() }
  })

  serveChange(app, changer, endPortalTokens, (state, { params: { id } }) => planEnd(state, id, clock.nowMs()))
}
