import type { Operation } from '@weir/api/operation.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { Changed, ChangePlan, PolicyChanger } from '@weir/policy-changes/change-policy.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { answerProblem } from '../http/problems.ts'
import { type RequestOf, serve } from '../http/serve.ts'

/**
 * Sends the outcome of a change: its problem, or the route's own answer with the id of the audit record in a header.
 */
export function answerChange<T, Sent>(
  reply: FastifyReply,
  changed: Changed<T>,
  send: (answer: T) => Sent,
): Sent | FastifyReply {
  if (changed.kind === 'problem') return answerProblem(reply, changed.problem)
  if (changed.change !== undefined) reply.header('weir-change', changed.change)
  return send(changed.answer)
}

/** Serves an operation that makes a credential (201), for no cache to store, or that deletes (204). */
export function serveChange<O extends Operation, T>(
  app: FastifyInstance,
  changer: PolicyChanger,
  operation: O,
  plan: (state: PolicyState, request: RequestOf<O>) => ChangePlan<T>,
): void {
  const status = 201 in operation.answers ? 201 : 204
  serve(app, operation, async (request, reply) => {
    if (status === 201) reply.header('cache-control', 'no-store')
    const changed = await changer.change(request.by, (state) => plan(state, request))
    return answerChange(reply, changed, (answer) => reply.code(status).send(answer))
  })
}
