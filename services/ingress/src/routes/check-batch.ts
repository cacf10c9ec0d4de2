import { badRequest, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import type { DecisionService } from '../decide/decision-service.ts'
import { denialProblem } from '../http/verdict-reply.ts'
import type { Ports } from '../ports.ts'
import { answerCheck, type Checked, isUnrecorded, jsonType, verdictText } from './check/answer-check.ts'
import { type CallerAuthorizer, principalOf } from './check/authorize-caller.ts'
import { batchSchema, checkRoute, readBatch, readCheck } from './check/check-body.ts'

/**
 * 100 checks of 2.6 kB, ten times a usual one. Reading so much takes some 2 ms, in which no other request is served.
 */
const batchBodyBytesMax = 262_144

const noWaiting = badRequest('A check of a batch does not wait: leave out wait, or ask on its own.')

const noHeaders = { header: () => undefined }

/** The result of one check of a batch, as JSON. */
function resultText(checked: Checked): string {
  if (checked.kind === 'problem') return JSON.stringify({ problem: checked.problem })
  const { verdict } = checked
  return isUnrecorded(verdict) ? JSON.stringify({ problem: denialProblem(noHeaders, verdict) }) : verdictText(verdict)
}

/**
 * `POST /v1/check/batch`: many checks at once, each decided for itself and in order, as if one had come after the
 * other. All are asked in one tick of the event loop, so that they share calls of the script.
 */
export function addCheckBatchRoute(
  app: FastifyInstance,
  ports: Ports,
  decisionService: DecisionService,
  authorizeCaller: CallerAuthorizer,
): void {
  const options = checkRoute(batchSchema, authorizeCaller)
  app.post('/v1/check/batch', { ...options, bodyLimit: batchBodyBytesMax }, async (request, reply) => {
    const { view, principal } = principalOf(request)
    const batch = readBatch(request.body)
    if ('wrong' in batch) return sendProblem(reply, badRequest(batch.wrong))
    const asked = { decisionService, view, nowMs: ports.clock.nowMs(), client: undefined }
    // Each is a promise from its beginning: one that throws must not leave others behind that nothing waits for.
    const checked = batch.value.checks.map(async (body) => {
      const read = readCheck(body)
      if ('wrong' in read) return { kind: 'problem', problem: badRequest(read.wrong) } as const
      if (read.value.wait !== undefined) return { kind: 'problem', problem: noWaiting } as const
      return answerCheck(asked, principal, read.value)
    })
    const results = (await Promise.all(checked)).map(resultText)
    return reply
      .header('content-type', jsonType)
      .header('cache-control', 'no-store')
      .send(`{"results":[${results.join()}]}`)
  })
}
