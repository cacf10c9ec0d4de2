import type { Clock } from '@weir/core/clock.ts'
import { markersName } from '@weir/core/limits/exceeding.ts'
import { olderRateLimitHeaders, type RateLimitDialect } from '@weir/core/limits/older-rate-limit-headers.ts'
import {
  rateLimitPolicy,
  rateLimitState,
  retryAfterSeconds,
  unauthenticatedPolicy,
  unauthenticatedState,
} from '@weir/core/limits/rate-limit-headers.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import { onExceedOf } from '../decide/limits/exceeded.ts'
import type { RecordedDecision } from '../decide/types.ts'

/** What headers of an answer are set on: a reply of Fastify's, or what the proxy collects to write at once. */
export interface HeaderTarget {
  header(name: string, value: string | number): unknown
}

/** In which words limits are told of: those of draft 10 unless configured otherwise. */
export interface VerdictWords {
  readonly dialect?: RateLimitDialect | undefined
  readonly clock: Clock
  /** The status of a cost that no waiting admits; 403 unless configured otherwise. */
  readonly costStatus?: 403 | 413 | undefined
}

/** The headers that every decided answer carries, through every door. */
export function setVerdictHeaders(reply: HeaderTarget, verdict: RecordedDecision, words: VerdictWords): void {
  const { id, decision, limits } = verdict
  const { dialect } = words
  if (id !== undefined) reply.header('weir-decision', id)
  if (dialect !== undefined && dialect !== 'draft10') {
    // Elsewhere, because this runs for every request, and small it is compiled better.
    setOlderHeaders(reply, verdict, dialect, words.clock)
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

const draftType = (word: string) => `https://iana.org/assignments/http-problem-types#${word}`

/** Names the page that lets people in again, on refusals by a limit with a challenge. */
export const challengeHeader = 'weir-challenge'

/** What a refused request gets to read. Sets the headers that go with its status. */
export function denialProblem(
  reply: HeaderTarget,
  verdict: RecordedDecision,
  { costStatus = 403 }: Pick<VerdictWords, 'costStatus'> = {},
): Problem {
  const { decision } = verdict
  const { reason, deniedBy } = decision
  if (reason === 'unauthorized' && decision.retryAfterMs > 0) {
    reply.header('retry-after', retryAfterSeconds(decision))
    return {
      type: draftType('abnormal-usage-detected'),
      title: 'Too many wrong credentials',
      status: 429,
      detail: 'Too many wrong credentials came from this address; new ones are not looked at for a while.',
      'violated-policies': [],
    }
  }
  if (reason === 'unauthorized') {
    reply.header('www-authenticate', 'Bearer')
    return {
      type: problemType('unauthorized'),
      title: 'Unauthorized',
      status: 401,
      detail: 'Send a valid key as "Authorization: Bearer KEY" or "X-API-Key: KEY".',
    }
  }
  const seconds = retryAfterSeconds(decision)
  if (reason === 'cost_exceeds_limit') {
    return {
      type: problemType('cost-exceeds-limit'),
      title: 'Cost exceeds limit',
      status: costStatus,
      detail: `This request costs more units than the limit ${deniedBy} ever admits; waiting does not help.`,
      'violated-policies': [deniedBy],
    }
  }
  reply.header('retry-after', seconds)
  if (reason === 'unavailable' || reason === 'journal_full') {
    return {
      type: draftType('temporary-reduced-capacity'),
      title: 'Temporarily reduced capacity',
      status: 503,
      detail: `The request could not be ${reason === 'unavailable' ? 'checked' : 'recorded'}. Try again in ${seconds} s.`,
      'violated-policies': deniedBy === '' ? [] : [deniedBy],
    }
  }
  if (deniedBy === markersName) {
    return {
      type: problemType('too-many-open'),
      title: 'Too many open decisions',
      status: 429,
      detail: `Too many idempotency keys and decisions to be settled are kept for this subject. Try again in ${seconds} s, or without both.`,
      'violated-policies': [deniedBy],
    }
  }
  const onExceed = onExceedOf(decision, verdict.limits)
  const challenge = onExceed?.kind === 'challenge' ? { challenge: onExceed.url } : undefined
  if (challenge !== undefined) reply.header(challengeHeader, challenge.challenge)
  return {
    type: draftType('quota-exceeded'),
    title: 'Quota exceeded',
    status: 429,
    detail:
      reason === 'blocked'
        ? `The limit ${deniedBy} was exceeded and shuts out whoever does that. Try again in ${seconds} s; trying before does not make it longer.`
        : `The limit ${deniedBy} is used up. Try again in ${seconds} s.`,
    'violated-policies': [deniedBy],
    ...challenge,
  }
}
