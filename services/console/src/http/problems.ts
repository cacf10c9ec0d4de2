import { didYouMean } from '@weir/core/suggest.ts'
import { policyUnavailable } from '@weir/policy-changes/change-problems.ts'
import { badRequest, type Problem, problem, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyReply } from 'fastify'

/** Whose bound a further stream or question meets. */
export type StreamRefusal = 'for this console' | 'for this credential'

/** The seconds after which a caller may repeat a request that failed because a server is down, or had no room. */
const retryAfterS = 5

/** The policy has nothing of the name in the detail. */
export const unknown = (detail: string): Problem => problem('unknown-name', 'Not found', 404, detail)

/** The policy has nothing of this name; the detail suggests the nearest of the `known` names. */
export const unknownName = (what: string, name: string, known: Iterable<string> = []): Problem =>
  unknown(`There is no ${what} ${JSON.stringify(name)}${didYouMean(name, known)}`)

/** The caller's copy is not the one that is in force, or the caller wanted there to be none. */
export const preconditionFailed = (detail: string): Problem =>
  problem('precondition-failed', 'Precondition failed', 412, detail)

/** A route of an earlier release; the detail says what to use. */
export const retired = (detail: string): Problem => problem('retired', 'Gone', 410, detail)

/** This process has not read the policy yet. */
export const policyUnread = policyUnavailable('The policy has not been read yet: Kafka does not respond.')
/** Redis does not answer, so that counts cannot be changed. */
export const limitsUnavailable = (detail: string): Problem => problem('limits-unavailable', 'Unavailable', 503, detail)
/** ClickHouse or Kafka does not answer a request about alerts. */
export const alertsUnavailable = (detail: string): Problem => problem('alerts-unavailable', 'Unavailable', 503, detail)
/** There is no key to sign portal tokens with. */
export const portalUnavailable = problem(
  'portal-unavailable',
  'Unavailable',
  503,
  'This console was started without WEIR_PORTAL_KEY, so it cannot make tokens for portals.',
)
/** There is no key to derive secrets of endpoints from. */
export const secretUnavailable = problem(
  'secret-unavailable',
  'Unavailable',
  503,
  'This console was started without WEIR_UNSUBSCRIBE_KEY, so it makes no secrets. Set it for console and alerting.',
)
/** ClickHouse does not answer a question about usage. */
export const usageUnavailable = (detail: string): Problem => problem('usage-unavailable', 'Unavailable', 503, detail)
/** ClickHouse does not answer a question about outcomes. */
export const outcomesUnavailable = (detail: string): Problem =>
  problem('outcomes-unavailable', 'Unavailable', 503, detail)

/** ClickHouse or Redis does not answer a question about blocks. */
export const blocksUnavailable = (detail: string): Problem => problem('blocks-unavailable', 'Unavailable', 503, detail)
/** A list of blocked addresses would lack some. */
export const addressesHidden = (detail: string): Problem => problem('addresses-hidden', 'Conflict', 409, detail)
/** ClickHouse does not answer a question about decisions. */
export const decisionsUnavailable = (detail: string): Problem =>
  problem('decisions-unavailable', 'Unavailable', 503, detail)
/** The text is no id of a decision. */
export const badDecisionId = badRequest(
  'A decision has a UUID of version 7, such as 01a20287-6fb6-7000-8000-000000000000: answers have it in Weir-Decision.',
)
/** No decision of the id, or none of the caller's; while it may be on its way, the problem says so. */
export const unknownDecision = (isMetered: boolean): Problem =>
  problem(
    'unknown-decision',
    'Not found',
    404,
    isMetered
      ? 'No decision has this id.'
      : 'No decision has this id yet: if it was made, it is not metered yet. Try again after Retry-After.',
  )

/** As many streams are open as there may be. */
export function tooManyStreams(of: StreamRefusal): Problem {
  const detail = `The maximum number of streams ${of} is open. Close one, or try again after Retry-After.`
  return problem('too-many-streams', 'Too many streams', 429, detail)
}

/** The limit of concurrent questions is reached, or they come too fast. */
export const tooManyQuestions = (detail: string): Problem =>
  problem('too-many-questions', 'Too many queries', 429, detail)

/** Sends a problem; a 503 and a 429 carry Retry-After. */
export function answerProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 503 || problem.status === 429) reply.header('retry-after', retryAfterS)
  return sendProblem(reply, problem)
}
