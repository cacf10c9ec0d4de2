import type { Clock } from '@weir/core/clock.ts'
import type { ByHand } from '@weir/core/limits/decision.ts'
import { markersName } from '@weir/core/limits/exceeding.ts'
import {
  olderRateLimitHeaders,
  type RateLimitDialect,
  rateLimitPolicy,
  rateLimitState,
  retryAfterSeconds,
  unauthenticatedPolicy,
  unauthenticatedState,
} from '@weir/core/limits/rate-limit-headers.ts'
import { onExceedOf } from '@weir/decide/limits/exceeded.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'

/** Takes the headers of an answer: a reply of Fastify's, or the list that the proxy writes in one call. */
export interface HeaderTarget {
  header(name: string, value: string | number): unknown
}

/** Collects headers as names and values in turns, which Node writes fastest. */
export function collector(headers: string[]): HeaderTarget {
  return {
    header(name: string, value: string | number) {
      headers.push(name, `${value}`)
    },
  }
}

/** How answers describe limits: by the headers of draft 10 unless configured otherwise. */
export interface ReplySettings {
  readonly dialect?: RateLimitDialect | 'none' | undefined
  readonly clock: Clock
  /** The status of a cost that no waiting admits; 403 unless configured otherwise. */
  readonly costStatus?: 403 | 413 | undefined
}

/** Sets the headers that every decided answer carries, at every entry point. */
export function setDecisionHeaders(reply: HeaderTarget, recorded: RecordedDecision, settings: ReplySettings): void {
  const { id, decision, limits } = recorded
  const { dialect } = settings
  if (id !== undefined) reply.header('weir-decision', id)
  if (dialect !== undefined && dialect !== 'draft10') {
    // A function of its own, because this one runs for every request, and is compiled better while it is small.
    if (dialect !== 'none') setOlderHeaders(reply, recorded, dialect, settings.clock)
    return
  }
  reply.header('ratelimit-policy', limits === undefined ? unauthenticatedPolicy : rateLimitPolicy(limits))
  reply.header('ratelimit', limits === undefined ? unauthenticatedState : rateLimitState(decision, limits))
}

type OlderDialect = Exclude<RateLimitDialect, 'draft10'>

function setOlderHeaders(
  reply: HeaderTarget,
  { decision, limits }: RecordedDecision,
  dialect: OlderDialect,
  clock: Clock,
): void {
  for (const [name, value] of olderRateLimitHeaders(dialect, decision, limits, clock.nowMs())) reply.header(name, value)
}

/** Whether reading or deciding ended in a problem. */
export const isProblem = <T extends object>(found: T | Problem): found is Problem => 'status' in found

/** The header that names the page where people are admitted again, on denials by a limit with a challenge. */
export const challengeHeader = 'weir-challenge'

/** A problem type of the IETF's draft on rate limits, with the limits that denied the request. */
const draftProblem = (word: string, title: string, status: number, detail: string, deniedBy: string): Problem => ({
  type: `https://iana.org/assignments/http-problem-types#${word}`,
  title,
  status,
  detail,
  'violated-policies': deniedBy === '' ? [] : [deniedBy],
})

/** A person has blocked the caller: no waiting of some seconds helps, so it is no 429. */
function byHandProblem(reply: HeaderTarget, byHand: ByHand, seconds: number): Problem {
  if (byHand.kind === 'suspended') return problem('suspended', 'Suspended', 403, byHand.reason)
  reply.header('retry-after', seconds)
  return problem('blocked', 'Blocked', 403, `Requests from this caller are blocked for ${seconds} s.`)
}

/**
 * The ancestor whose limit refused; what that limit counts, where that is neither the cost nor requests; and how much
 * of it is only held, which is not said of an ancestor's.
 */
function countedBy({ decision, limits, above }: RecordedDecision) {
  const { unit, level = 0 } = limits?.find(({ name }) => name === decision.deniedBy) ?? {}
  const at = above?.[level - 1]?.id
  if (at !== undefined) return unit === undefined || unit === 'requests' ? { at } : { unit, at }
  if (unit === undefined || unit === 'requests') return {}
  const state = decision.limits.find(({ name }) => name === decision.deniedBy)
  // What is held is neither used nor left. A block leaves nothing either.
  const held = state === undefined || decision.reason === 'blocked' ? 0 : state.size - state.used - state.remaining
  return held > 0 ? { unit, held } : { unit }
}

/** The body of a denial. Sets the headers that go with its status. */
export function denialProblem(
  reply: HeaderTarget,
  recorded: RecordedDecision,
  { costStatus = 403 }: Pick<ReplySettings, 'costStatus'> = {},
): Problem {
  const { decision } = recorded
  const { reason, deniedBy } = decision
  const seconds = retryAfterSeconds(decision)
  if (decision.byHand !== undefined) return byHandProblem(reply, decision.byHand, seconds)
  if (reason === 'unauthorized' && decision.retryAfterMs === 0) {
    reply.header('www-authenticate', 'Bearer')
    const detail = 'Send a valid key as "Authorization: Bearer KEY" or "X-API-Key: KEY".'
    return problem('unauthorized', 'Unauthorized', 401, detail)
  }
  if (reason === 'cost_exceeds_limit') {
    const detail = `This request costs more units than the limit ${deniedBy} can ever allow. Waiting does not help.`
    const title = 'Cost exceeds limit'
    return { ...problem('cost-exceeds-limit', title, costStatus, detail), 'violated-policies': [deniedBy] }
  }
  reply.header('retry-after', seconds)
  if (reason === 'unauthorized') {
    const detail = 'Too many wrong credentials from this address. A valid credential is still accepted.'
    return draftProblem('abnormal-usage-detected', 'Too many wrong credentials', 429, detail, '')
  }
  if (reason === 'unavailable' || reason === 'journal_full') {
    const done = reason === 'unavailable' ? 'checked' : 'recorded'
    const detail = `The request could not be ${done}. Try again in ${seconds} s.`
    return draftProblem('temporary-reduced-capacity', 'Temporarily reduced capacity', 503, detail, deniedBy)
  }
  if (deniedBy === markersName) {
    const detail = `This subject has too many open idempotency keys and unsettled decisions. Try again in ${seconds} s, or send the request without them.`
    return { ...problem('too-many-open', 'Too many open decisions', 429, detail), 'violated-policies': [deniedBy] }
  }
  const onExceed = onExceedOf(decision, recorded.limits)
  const challenge = onExceed?.kind === 'challenge' ? { challenge: onExceed.url } : undefined
  if (challenge !== undefined) reply.header(challengeHeader, challenge.challenge)
  const detail =
    reason === 'blocked'
      ? `The limit ${deniedBy} was exceeded, and the caller is blocked. Try again in ${seconds} s; earlier attempts do not extend the block.`
      : `The limit ${deniedBy} is used up. Try again in ${seconds} s.`
  return {
    ...draftProblem('quota-exceeded', 'Quota exceeded', 429, detail, deniedBy),
    ...countedBy(recorded),
    ...challenge,
  }
}
