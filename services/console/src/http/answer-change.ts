import type { FastifyReply } from 'fastify'
import type { Changed } from '../change-policy.ts'
import { answerProblem } from './problems.ts'

/**
 * Sends the outcome of a change: its problem, or the route's own answer with the id of the audit record in a header.
 */
export function answerChange<T>(reply: FastifyReply, changed: Changed<T>, send: (answer: T) => unknown): unknown {
  if (changed.kind === 'problem') return answerProblem(reply, changed.problem)
  if (changed.change !== undefined) reply.header('weir-change', changed.change)
  return send(changed.answer)
}
