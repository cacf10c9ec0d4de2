import { badRequest, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { DecisionService } from '../decide/decision-service.ts'
import { denialProblem, setVerdictHeaders } from '../http/verdict-reply.ts'
import type { Ports } from '../ports.ts'
import { answerCheck, type Checked, isUnrecorded, jsonType, verdictText } from './check/answer-check.ts'
import { type CallerAuthorizer, principalOf } from './check/authorize-caller.ts'
import { checkRoute, checkSchema, readCheck } from './check/check-body.ts'

/** `POST /v1/check`: a decision without a proxied request. */
export function addCheckRoute(
  app: FastifyInstance,
  ports: Ports,
  decisionService: DecisionService,
  authorizeCaller: CallerAuthorizer,
): void {
  const send = (reply: FastifyReply, checked: Checked) => {
    if (checked.kind === 'problem') return sendProblem(reply, checked.problem)
    setVerdictHeaders(reply, checked.verdict, ports)
    if (isUnrecorded(checked.verdict)) return sendProblem(reply, denialProblem(reply, checked.verdict))
    return reply.header('content-type', jsonType).header('cache-control', 'no-store').send(verdictText(checked.verdict))
  }

  // It is not async, because Fastify would wait for its promise too: a microsecond of every request.
  app.post('/v1/check', checkRoute(checkSchema, authorizeCaller), (request, reply) => {
    const { view, principal } = principalOf(request)
    const read = readCheck(request.body)
    if ('wrong' in read) {
      sendProblem(reply, badRequest(read.wrong))
      return
    }
    const checked = answerCheck(
      { decisionService, view, nowMs: ports.clock.nowMs(), client: reply.raw },
      principal,
      read.value,
    )
    if (checked instanceof Promise) checked.then((found) => send(reply, found)).catch((error) => reply.send(error))
    else send(reply, checked)
  })
}
