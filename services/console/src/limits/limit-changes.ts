import { resetLimits, unblockLimits } from '@weir/api/limits.ts'
import { type PolicyChanger, type Rejected, reject } from '@weir/policy-changes/change-policy.ts'
import { type AskedLimits, findAskedLimits, type LimitQuery } from '@weir/redis/asked-limits.ts'
import type { LimitChange, OnForgotten } from '@weir/redis/limit-admin.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { answerProblem, policyUnread, unknown } from '../http/problems.ts'
import { type RequestOf, serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'
import { answerCountChange, noRedis } from './count-change.ts'

/** Finds the limits of a question; a rejection says what is wrong with it. */
export function findLimits(
  { policy: { state } }: Pick<Sources, 'policy'>,
  question: LimitQuery,
): Rejected | { readonly kind: 'found'; readonly asked: AskedLimits } {
  if (state === undefined) return reject(policyUnread)
  const found = findAskedLimits(state.policy, question)
  if (found.kind === 'found') return found
  return reject(found.kind === 'malformed' ? badRequest(`${found.field} ${found.message}`) : unknown(found.message))
}

/** `POST /v1/subjects/{id}/limits/reset|unblock`. Processes drop their cached denials when they get the notice. */
export function registerLimitChanges(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const answer = async (request: RequestOf<typeof resetLimits>, reply: FastifyReply, change: LimitChange) => {
    const { id } = request.params
    const { limits } = sources
    if (limits === undefined) return answerProblem(reply, noRedis)
    const { key_id: keyId, ...rest } = request.body ?? {}
    const question = { subject: id, ...rest, ...(keyId === undefined ? {} : { keyId }) }
    return await answerCountChange(request, reply, changer, () => {
      const found = findLimits(sources, question)
      if (found.kind === 'problem') return found
      const lines = [
        { what: change, kind: 'subject', name: id } as const,
        ...found.asked.limits.map(({ limit }) => ({ what: change, kind: 'limit', name: limit.name }) as const),
      ]
      const make = (onForgotten: OnForgotten) => limits.changeCounts(found.asked, question, change, onForgotten)
      return { kind: 'counts', subject: id, lines, make }
    })
  }
  serve(app, resetLimits, (request, reply) => answer(request, reply, 'reset'))
  serve(app, unblockLimits, (request, reply) => answer(request, reply, 'unblock'))
}
