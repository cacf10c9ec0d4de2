import { sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { DecisionService } from '../decide/decision-service.ts'
import { denialProblem, setVerdictHeaders } from '../http/verdict-reply.ts'
import type { Ports } from '../ports.ts'
import { answerCheck, badCheck, type Checked, isUnrecorded, jsonType, verdictText } from './check/answer-check.ts'
import { askedBy, type createAskerCheck } from './check/check-asker.ts'
import { asItComes, checkSchema, readCheck } from './check/check-body.ts'

/** `POST /v1/check`: a decision without a proxied request. */
export function addCheckRoute(
  app: FastifyInstance,
  ports: Ports,
  decisionService: DecisionService,
  checkAsker: ReturnType<typeof createAskerCheck>,
): void {
  const send = (reply: FastifyReply, checked: Checked) => {
    if (checked.kind === 'problem') return sendProblem(reply, checked.problem)
    setVerdictHeaders(reply, checked.verdict, ports)
    if (isUnrecorded(checked.verdict)) return sendProblem(reply, denialProblem(reply, checked.verdict))
    return reply.header('content-type', jsonType).header('cache-control', 'no-store').send(verdictText(checked.verdict))
  }

  const options = { schema: { body: checkSchema }, onRequest: checkAsker, validatorCompiler: asItComes }
  // Not async, because Fastify would wait for its promise beside ours: a microsecond of every request.
  app.post('/v1/check', options, (request, reply) => {
    const { view, asker } = askedBy(request)
    const read = readCheck(request.body)
    if ('wrong' in read) {
      sendProblem(reply, badCheck(read.wrong))
      return
    }
    const checked = answerCheck(
      { decisionService, view, nowMs: ports.clock.nowMs(), client: reply.raw },
      asker,
      read.value,
    )
    if (checked instanceof Promise) checked.then((found) => send(reply, found)).catch((error) => reply.send(error))
    else send(reply, checked)
  })
}
