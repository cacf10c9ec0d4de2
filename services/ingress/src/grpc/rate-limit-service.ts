import { type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js'
import type { Logger } from '@weir/runtime/logger.ts'
import type { DecisionService } from '../decide/decision-service.ts'
import type { Ports } from '../ports.ts'
import { answerOf, refusalOf } from './answer.ts'
import type { RateLimitRequest, RateLimitResponse } from './messages.ts'
import { readQuestion } from './read-question.ts'

/** Authorizes a call by its metadata; undefined if it may check, else the refusal. */
export type CallAuthorizer = (authorization: string) => { readonly code: status; readonly details: string } | undefined

type Call = ServerUnaryCall<RateLimitRequest, RateLimitResponse>

/**
 * `ShouldRateLimit`: a gateway calls it before it forwards a request. It is decided like any other request, by one
 * script call for all of its descriptors. Refusals of every kind are `OVER_LIMIT`: an error would make Envoy let the
 * request through.
 */
export function createShouldRateLimit(
  ports: Ports,
  decisionService: DecisionService,
  authorizeCall: CallAuthorizer,
  log: Logger,
) {
  const decide = async (request: RateLimitRequest): Promise<RateLimitResponse | { readonly wrong: string }> => {
    const { view } = ports.policy
    const question = readQuestion(view, request, ports.clock.nowMs())
    if (question.kind === 'wrong') return { wrong: question.detail }
    const count = request.descriptors.length
    if (question.kind === 'refused') return refusalOf(question.detail, count)
    const { ip, route, method } = question
    if (question.kind === 'unauthenticated') {
      return answerOf(
        await decisionService.rejectUnauthenticated({ ip, route, method, retryAfterMs: 0 }),
        count,
        undefined,
        ports,
      )
    }
    const { subject, keyId, cost, isPeek, named, limits, hasOverrides } = question
    const asked = { view, subject, keyId, ip, route, method, cost, named, limits, hasOverrides }
    return answerOf(
      await decisionService.decide({ ...asked, peek: isPeek, idempotencyKey: undefined }),
      count,
      question,
      ports,
    )
  }

  return function shouldRateLimit(call: Call, answer: sendUnaryData<RateLimitResponse>): void {
    const refusal = authorizeCall(`${call.metadata.get('authorization')[0] ?? ''}`)
    if (refusal !== undefined) {
      answer(refusal)
      return
    }
    decide(call.request).then(
      (found) => {
        if ('wrong' in found) answer({ code: status.INVALID_ARGUMENT, details: found.wrong })
        else answer(null, found)
      },
      (error: unknown) => {
        log.error({ err: error }, 'ShouldRateLimit failed')
        answer({ code: status.INTERNAL, details: 'The request could not be decided; the log says why.' })
      },
    )
  }
}
