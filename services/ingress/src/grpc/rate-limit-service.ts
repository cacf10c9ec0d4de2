import { type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js'
import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { unlimitedDecision } from '@weir/core/limits/limit-store.ts'
import type { DecisionService } from '@weir/decide/decision-service.ts'
import { limitsOf } from '@weir/decide/limits/limit-request.ts'
import type { DecisionRequest, RecordedDecision } from '@weir/decide/types.ts'
import { fingerprint } from '@weir/runtime/admin-token.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { createTokenCheck } from '../http/check-token.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'
import type { RequestTrace } from '../trace/request-trace.ts'
import { answerOf, asRefusal, joinAnswers, refusalOf } from './answer.ts'
import { chargedBeyond } from './descriptor-limits.ts'
import type { RateLimitRequest, RateLimitResponse } from './messages.ts'
import { type QuestionPart, readQuestions } from './read-question.ts'

const rpcMethod = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'

/** What descriptors are answered that only give back. */
const unasked = { id: undefined, decision: unlimitedDecision, limits: [] }

type Call = ServerUnaryCall<RateLimitRequest, RateLimitResponse>

/**
 * `ShouldRateLimit`: a gateway calls it before it forwards a request. It is decided like any other request, by one
 * script call for all of its descriptors. Refusals of every kind are `OVER_LIMIT`: an error would make Envoy let the
 * request through.
 */
export function createShouldRateLimit(
  ports: Ports,
  decisionService: DecisionService,
  adminTokenSha256: () => string,
  onMessage: (call: Call) => void,
  log: Logger,
) {
  const authorizeCall = createCallAuthorizer(ports, adminTokenSha256)
  const decide = async (
    call: Call,
    startedAt: number,
    trace: RequestTrace | undefined,
  ): Promise<RateLimitResponse | { readonly wrong: string }> => {
    const { request } = call
    const { view } = ports.policy
    const parts = readQuestions(view, request, ports.clock.nowMs())
    if ('kind' in parts) return { wrong: parts.detail }
    // All of them are in one call to Redis, in their order.
    const answers = await Promise.all(parts.map((part) => answerPart(view, part, { call, startedAt, trace })))
    return joinAnswers(answers, parts, request.descriptors.length)
  }

  async function answerPart(
    view: PolicyView,
    { question, hits, descriptors: { length: count } }: QuestionPart,
    { call, startedAt, trace }: { call: Call; startedAt: number; trace: RequestTrace | undefined },
  ): Promise<RateLimitResponse> {
    if (question.kind === 'refused') return refusalOf(question.detail, count)
    const { ip, route, method } = question
    const from = { entryPoint: 'grpc', startedAt, ip, route, method, trace: trace?.decision() } as const
    if (question.kind === 'unauthenticated') {
      const rejected = await decisionService.rejectUnauthenticated({ ...from, retryAfterMs: 0 })
      return answerOf(rejected, count, undefined, ports)
    }
    const { subject, keyId, cost, isPeek, named, limits, hasOverrides } = question
    const asked = { ...from, view, subject, keyId, cost, named, limits, hasOverrides, idempotencyKey: undefined }
    if (hits === 'given-back') {
      if (!isPeek) await decisionService.giveBack({ ...asked, peek: false })
      return answerOf(unasked, count, undefined, ports)
    }
    if (hits === 'asked')
      return answerOf(await decisionService.decide({ ...asked, peek: isPeek }), count, question, ports)
    const used = { ...asked, limits: limitsOf({ ...asked, peek: false }).map(chargedBeyond), peek: false }
    const recorded = await decisionService.decide(used)
    const slots = { ...asked, limits: limitsOf({ ...asked, peek: false }).filter(countsInFlight), peek: false }
    if (slots.limits.length > 0) await followSlots(decisionService, slots, recorded, isLeft(call, startedAt))
    return answerOf(asRefusal(recorded), count, question, ports)
  }

  const { traces } = ports
  const beginTrace = ({ metadata }: Call, startedAt: number) => {
    const [traceparent] = metadata.get('traceparent')
    // The calls of a gateway come from itself, and whether it may call at all has been asked before.
    const trace = traces?.join(traceparent?.toString(), metadata.get('tracestate')[0]?.toString(), true)
    return trace?.start(rpcMethod, startedAt, { 'rpc.system': 'grpc', 'rpc.method': rpcMethod })
  }

  return function shouldRateLimit(call: Call, answer: sendUnaryData<RateLimitResponse>): void {
    const startedAt = performance.now()
    onMessage(call)
    const refusal = authorizeCall(`${call.metadata.get('authorization')[0] ?? ''}`)
    if (refusal !== undefined) {
      answer(refusal)
      return
    }
    const trace = beginTrace(call, startedAt)
    decide(call, startedAt, trace).then(
      (found) => {
        trace?.end({}, false)
        if ('wrong' in found) answer({ code: status.INVALID_ARGUMENT, details: found.wrong })
        else answer(null, found)
      },
      (error: unknown) => {
        trace?.end({}, true)
        log.error({ err: error }, 'ShouldRateLimit failed')
        answer({ code: status.INTERNAL, details: 'No decision could be made. See the log for the reason.' })
      },
    )
  }
}

/** A gateway gives back the slots of each call, also of one that had none; but of none that its client left. */
async function followSlots(
  decisionService: DecisionService,
  slots: DecisionRequest,
  { decision }: RecordedDecision,
  isLeft: boolean,
): Promise<void> {
  const isCounted = decision.charged !== 'no'
  if (isCounted && isLeft) await decisionService.giveBack(slots)
  if (!isCounted && !isLeft) await decisionService.countRefused(slots)
}

/**
 * Returns whether the gateway gave the call up because its client hung up. Envoy then never gives the call's slots
 * back, although it does so after its own timeout. Both cancel the call, the timeout some milliseconds before or after
 * the deadline that Weir knows. So only a call that ended in the first half of its time counts as left by a client.
 */
function isLeft(call: Call, startedAt: number): boolean {
  const waitedMs = performance.now() - startedAt
  return call.cancelled && Number(call.getDeadline()) - Date.now() > waitedMs
}

/**
 * Authorizes gateways: a token with the scope check may check any subject, as `authorization: Bearer TOKEN` in the
 * call's metadata. Where none is required, because only this machine can call, a call without one is accepted; a wrong
 * one is not. Gateways send one token with every call.
 */
export function createCallAuthorizer(
  { policy, clock, grpcNeedsNoToken = false }: Pick<Ports, 'policy' | 'clock' | 'grpcNeedsNoToken'>,
  adminTokenSha256: () => string,
) {
  const hashOf = (authorization: string) =>
    /^bearer /i.test(authorization) ? fingerprint(authorization.slice(7).trim()) : ''
  const checkToken = createTokenCheck(adminTokenSha256, hashOf, clock)
  /** Returns the refusal of a call with this metadata; undefined if it may check. */
  return function authorizeCall(
    authorization: string,
  ): { readonly code: status; readonly details: string } | undefined {
    if (authorization === '') return grpcNeedsNoToken ? undefined : missing
    const token = checkToken(policy.view.policy, authorization, policy)
    if (token === 'authorized') return undefined
    if (token === 'unknown') return unknown
    return { code: status.PERMISSION_DENIED, details: `The token ${token.name} lacks the \`check\` scope.` }
  }
}

const missing = {
  code: status.UNAUTHENTICATED,
  details: 'Send a token with the `check` scope in the call metadata: authorization: Bearer TOKEN.',
}
const unknown = { code: status.UNAUTHENTICATED, details: 'The token in the metadata field authorization is unknown.' }
