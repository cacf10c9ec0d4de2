import { sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import type { DecisionService } from '../decide/decision-service.ts'
import { denialProblem } from '../http/verdict-reply.ts'
import type { Ports } from '../ports.ts'
import { answerCheck, badCheck, type Checked, isUnrecorded, jsonType, verdictText } from './check/answer-check.ts'
import { askedBy, type createAskerCheck } from './check/check-asker.ts'
import { asItComes, batchSchema, readBatch, readCheck } from './check/check-body.ts'

/** 100 checks of 2.6 kB, ten times a usual one. Reading so much takes some 2 ms, in which nobody else is served. */
const batchBodyBytesMax = 262_144

const noWaiting = badCheck('A check of a batch does not wait: leave out wait, or ask on its own.')

const noHeaders = { header: () => undefined }

/** What one check of a batch came to, as JSON. */
function resultText(checked: Checked): string {
  if (checked.kind === 'problem') return JSON.stringify({ problem: checked.problem })
  const { verdict } = checked
  return isUnrecorded(verdict) ? JSON.stringify({ problem: denialProblem(noHeaders, verdict) }) : verdictText(verdict)
}

/**
 * `POST /v1/check/batch`: many checks at once, each decided for itself and in order, as if one had come after the other.
 * All are asked in one turn of the event loop, so that they share calls of the script.
 */
export function addCheckBatchRoute(
  app: FastifyInstance,
  ports: Ports,
  decisionService: DecisionService,
  checkAsker: ReturnType<typeof createAskerCheck>,
): void {
  const options = { schema: { body: batchSchema }, onRequest: checkAsker, validatorCompiler: asItComes }
  app.post('/v1/check/batch', { ...options, bodyLimit: batchBodyBytesMax }, async (request, reply) => {
    const { view, asker } = askedBy(request)
    const batch = readBatch(request.body)
    if ('wrong' in batch) return sendProblem(reply, badCheck(batch.wrong))
    const asked = { decisionService, view, nowMs: ports.clock.nowMs(), client: undefined }
    // Each in a promise from its beginning: one that throws must not leave behind others that nobody waits for.
    const checked = batch.value.checks.map(async (body) => {
      const read = readCheck(body)
      if ('wrong' in read) return { kind: 'problem', problem: badCheck(read.wrong) } as const
      if (read.value.wait !== undefined) return { kind: 'problem', problem: noWaiting } as const
      return answerCheck(asked, asker, read.value)
    })
    const results = (await Promise.all(checked)).map(resultText)
    return reply
      .header('content-type', jsonType)
      .header('cache-control', 'no-store')
      .send(`{"results":[${results.join()}]}`)
  })
}
