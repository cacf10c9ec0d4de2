import { liftBlock } from '@weir/api/limits.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import type { OnForgotten } from '@weir/redis/limit-admin.ts'
import { limitOfKey, subjectOfKey } from '@weir/redis/recorded-scope.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, policyUnread, unknown } from '../http/problems.ts'
import { serve } from '../http/serve.ts'
import { answerChange } from '../policy/answer-change.ts'
import type { Sources } from '../sources.ts'
import { answerCountChange, noRedis, redisProblem } from './count-change.ts'
import { planLift } from './manual-blocks.ts'

/** Notices name a subject; processes drop every cached denial whichever it is. */
const shared = '_global'

/** `POST /v1/blocks/{id}/lift`: ends one block now, in Redis and in what processes remember. */
export function registerBlockLift(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  serve(app, liftBlock, async (request, reply) => {
    const { params, body, log } = request
    const { limits: source, clock } = sources
    const forget = body?.forget ?? false
    const byHand = sources.policy.state?.get('block', params.id)
    if (byHand !== undefined) {
      const plan = (state: PolicyState) => planLift(state.get('block', params.id) ?? byHand, clock.nowMs())
      return answerChange(reply, await changer.change(request.by, plan), (answer) => answer)
    }
    if (source === undefined) return answerProblem(reply, noRedis)
    let key: string | undefined
    try {
      key = await source.blocks.keyOf(params.id)
    } catch (error) {
      return answerProblem(reply, redisProblem(error, log))
    }
    if (key === undefined) {
      return answerProblem(
        reply,
        unknown('There is no block of this id. GET /v1/blocks lists the ids of those that stand.'),
      )
    }
    const counted = key
    return await answerCountChange(request, reply, changer, () => {
      const { state } = sources.policy
      if (state === undefined) return reject(policyUnread)
      const { subjects, limits } = state.policy
      const name = limitOfKey(counted)
      const base = limits.get(name)
      const id = base === undefined ? '' : subjectOfKey(counted, base)
      const owner = subjects.get(id)
      const limit = owner?.ownLimits.get(name) ?? base
      const what = forget ? 'reset' : 'unblock'
      const lines = [
        // A subject that is an address stays out of the audit, as every address does.
        ...(id === '' || id.startsWith('ip:') ? [] : [{ what, kind: 'subject', name: id } as const]),
        { what, kind: 'limit', name } as const,
      ]
      const scope = { subject: id, timeZone: owner?.timeZone ?? 'UTC', anchor: owner?.anchor ?? 1 }
      const make = async (onForgotten: OnForgotten) => {
        const done = await source.blocks.lift(counted, limit, forget, scope, onForgotten)
        return { limit: name, subject: id === '' ? null : id, ...done }
      }
      return { kind: 'counts', subject: lines.length > 1 ? id : shared, lines, make }
    })
  })
}
