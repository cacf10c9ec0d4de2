import type { LimitState } from '@weir/core/limits/decision.ts'
import { chargesBeyond, refuses } from '@weir/core/limits/exceeding.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import { degradedBy } from '@weir/decide/limits/exceeded.ts'
import type { RecordedDecision } from '@weir/decide/types.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import { denialProblem, type ReplySettings, setDecisionHeaders } from '../http/decision-reply.ts'
import { codes, type DescriptorStatus, type Header, type RateLimitResponse, unitNames, unitsByMs } from './messages.ts'
import type { Question, QuestionPart } from './read-question.ts'

/** The largest count of the wire format; a descriptor without limits has this much left. */
const countMax = 4_294_967_295

/** The decision as Envoy reads it: a code for each descriptor, and the headers and the body that its client gets. */
export function answerOf(
  recorded: RecordedDecision,
  descriptors: number,
  question: Question | undefined,
  settings: ReplySettings,
): RateLimitResponse {
  const headers: Header[] = []
  const target = {
    header(key: string, value: string | number) {
      headers.push({ key, value: `${value}` })
    },
  }
  setDecisionHeaders(target, recorded, settings)
  const statuses = Array.from({ length: descriptors }, (_, at) => statusOf(recorded, question, at))
  if (recorded.decision.allowed) {
    const limit = degradedBy(recorded.decision)
    const degraded = limit === '' ? {} : { requestHeadersToAdd: [{ key: 'x-weir-degraded', value: limit }] }
    return { overallCode: codes.ok, statuses, responseHeadersToAdd: headers, ...degraded }
  }
  const problem = denialProblem(target, recorded, settings)
  target.header('content-type', 'application/problem+json')
  return {
    overallCode: codes.overLimit,
    statuses,
    responseHeadersToAdd: headers,
    rawBody: Buffer.from(JSON.stringify(problem)),
  }
}

/** What was charged beyond a limit, as a refusal: the gateway is to let nothing more through. */
export function asRefusal(recorded: RecordedDecision): RecordedDecision {
  const { decision } = recorded
  const { allowed, deniedBy, limits } = decision
  if (!allowed || deniedBy === '') return recorded
  const retryAfterMs = limits.find(({ name }) => name === deniedBy)?.resetMs ?? 0
  return { ...recorded, decision: { ...decision, allowed: false, retryAfterMs } }
}

/** One answer to all parts: the status of each descriptor at its place, and what the first that refuses says. */
export function joinAnswers(
  answers: readonly RateLimitResponse[],
  parts: readonly QuestionPart[],
  descriptors: number,
): RateLimitResponse {
  const [first] = answers
  if (first === undefined || answers.length === 1) return first ?? refusalOf('There is no descriptor.', 0)
  const statuses = Array.from({ length: descriptors }, (_, at): DescriptorStatus => {
    const part = parts.findIndex((one) => one.descriptors.includes(at))
    return answers[part]?.statuses[parts[part]?.descriptors.indexOf(at) ?? 0] ?? { code: codes.ok }
  })
  return { ...(answers.find(({ overallCode }) => overallCode === codes.overLimit) ?? first), statuses }
}

/** Refuses a request that no entry point accepts, without a decision. Envoy would admit it on an error. */
export function refusalOf(detail: string, descriptors: number): RateLimitResponse {
  return {
    overallCode: codes.overLimit,
    statuses: Array.from({ length: descriptors }, () => ({ code: codes.overLimit })),
    responseHeadersToAdd: [{ key: 'content-type', value: 'application/problem+json' }],
    rawBody: Buffer.from(JSON.stringify(badRequest(detail))),
  }
}

/** The status of one descriptor. Shadow limits are left out. */
function statusOf(
  { decision, limits = [] }: RecordedDecision,
  question: Question | undefined,
  at: number,
): DescriptorStatus {
  const { allowed, exceededMask } = decision
  let isOver = false
  let tightest: { readonly limit: Limit; readonly state: LimitState } | undefined
  for (const [position, limit] of limits.entries()) {
    const of = question?.of[position]
    if (limit.mode === 'shadow' || (of !== undefined && !of.includes(at))) continue
    const mayRefuse = !allowed && (refuses(limit) || chargesBeyond(limit))
    const isRefusing = mayRefuse && (exceededMask & (1 << position)) !== 0
    // In a decision made without Redis, or from memory, some limits have no state.
    const isWhole = decision.limits.length === limits.length
    const state = isWhole ? decision.limits[position] : decision.limits.find(({ name }) => name === limit.name)
    // A refusal by a block names only the blocks.
    const isShort =
      mayRefuse && !chargesBeyond(limit) && state !== undefined && state.remaining < wantedOf(limit, question)
    isOver ||= isRefusing || isShort
    // What an ancestor has left is not for its members to know.
    if (state === undefined || limit.level !== undefined) continue
    if (tightest === undefined || state.remaining < tightest.state.remaining) tightest = { limit, state }
  }
  // A denial without bits (Redis is down, an unknown key) is a denial of every descriptor.
  const code = isOver || (!allowed && exceededMask === 0) ? codes.overLimit : codes.ok
  if (tightest === undefined)
    return question?.isKnown[at] === false || code === codes.overLimit ? { code } : { code, limitRemaining: countMax }
  const { limit, state } = tightest
  return {
    code,
    currentLimit: {
      requestsPerUnit: Math.min(limit.size, countMax),
      unit: limit.span.kind === 'window' ? (unitsByMs.get(limit.span.ms) ?? 0) : unitNames.indexOf(limit.span.unit),
      name: limit.name,
    },
    limitRemaining: Math.min(state.remaining, countMax),
    durationUntilReset: { seconds: Math.floor(state.resetMs / 1_000), nanos: (state.resetMs % 1_000) * 1_000_000 },
  }
}

/** Units of the limit that the request wanted. */
function wantedOf({ override }: Limit, question: Question | undefined): number {
  if (override !== undefined) return override.isPeek === true ? 1 : override.cost
  return question?.cost ?? 0
}
