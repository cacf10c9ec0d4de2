import type { PolicyFault } from '@weir/policy/entities.ts'
import { type Problem, problemType, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyReply } from 'fastify'

/** How soon a caller may try again what failed because a server is away. */
const retryAfterS = 5

/** Something that the policy does not have; `near` says what may have been meant. */
export const unknownName = (what: string, name: string, near: string): Problem => ({
  type: problemType('unknown-name'),
  title: 'Not found',
  status: 404,
  detail: `There is no ${what} ${JSON.stringify(name)}${near}`,
})

export const badRequest = (detail: string): Problem => ({
  type: problemType('bad-request'),
  title: 'Bad request',
  status: 400,
  detail,
})

/** The caller's copy is not the one that is in force, or it wanted there to be none. */
export const preconditionFailed = (detail: string): Problem => ({
  type: problemType('precondition-failed'),
  title: 'Precondition failed',
  status: 412,
  detail,
})

export const conflict = (detail: string): Problem => ({
  type: problemType('conflict'),
  title: 'Conflict',
  status: 409,
  detail,
})

/** One thing that is wrong with a change; the place in the file where one was sent. */
export interface RefusedPart extends PolicyFault {
  readonly line?: number
  readonly column?: number
}

/** All that keeps a change from being made, at once. */
export const changeRefused = (problems: readonly RefusedPart[]): Problem => ({
  type: problemType('policy-refused'),
  title: 'The policy would not be right',
  status: 422,
  detail: `Nothing was changed. ${problems.map(({ path, message }) => `${path === '' ? '' : `${path}: `}${message}`).join('; ')}`,
  problems,
})

/** Kafka is away, or this process has not read the policy yet. */
export const policyUnavailable = (detail: string): Problem => ({
  type: problemType('policy-unavailable'),
  title: 'Unavailable',
  status: 503,
  detail,
})

export const limitsUnavailable = (detail: string): Problem => ({
  type: problemType('limits-unavailable'),
  title: 'Unavailable',
  status: 503,
  detail,
})

/** Sends a problem; one that passes by itself says when to come back. */
export function answerProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 503) reply.header('retry-after', retryAfterS)
  return sendProblem(reply, problem)
}
