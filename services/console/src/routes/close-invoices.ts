import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { durationPattern, parseDurationMs } from '@weir/policy/policy-values.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { findBilled } from '../billed-subject.ts'
import { closeMonth, openMoment } from '../close-month.ts'
import { answerProblem, type OpenPeriod, periodOpen, policyUnread, usageUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, closed, object, operation, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { invoiceSummary } from './read-invoices.ts'

/** Each is some queries of milliseconds, one after the other: a person or a job waits for the answer. */
const subjectsMax = 100

const body = closed(
  {
    period: {
      ...text('the month that begins then in each subject’s own calendar: 2026-11'),
      pattern: '^\\d{4}-(0[1-9]|1[0-2])$',
    },
    subjects: { type: 'array', minItems: 1, maxItems: subjectsMax, uniqueItems: true, items: text('id') },
    grace: { ...text('how long records may be late'), pattern: durationPattern, default: '1h' },
    accept_gaps: { ...text('why the month is closed although records are missing'), minLength: 1, maxLength: 1_000 },
  },
  ['period', 'subjects'],
)

const summaryOf = ({ document: _, ...rest }: StoredInvoice) => rest

interface Close {
  readonly Body: {
    readonly period: string
    readonly subjects: readonly string[]
    readonly grace: string
    readonly accept_gaps?: string
  }
}

const down = usageUnavailable('ClickHouse did not answer. What is closed stays closed; repeat it.')
/** It would say which price list counted then, for good. */
const behind = usageUnavailable(
  'The history of the policy has not the newest change yet. Nothing was closed; repeat it.',
)

/** `POST /v1/invoices` closes a month of each subject of which nothing stands in the way. */
export function registerClosing(app: FastifyInstance, ports: Ports): void {
  app.post<Close>(
    '/v1/invoices',
    operation('billing', 'invoices', 'Close a month of these subjects', {
      body,
      response: {
        200: answer(
          'Closed, now or before',
          object({
            items: { type: 'array', items: invoiceSummary },
            nothing: {
              type: 'array',
              description: 'of whom there is nothing to invoice, and why',
              items: object({ path: text('the subject'), message: text('why') }),
            },
          }),
        ),
        ...problems(409, 503),
      },
    }),
    orUnavailable(
      'a month could not be closed',
      down,
    )(async ({ body: { period: month, subjects, grace, accept_gaps: acceptGaps } }, reply) => {
      const { state, checkpoint } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const graceMs = parseDurationMs(grace)
      if (graceMs === undefined) return answerProblem(reply, badRequest('grace must be a duration such as 1h or 2d'))
      const items: object[] = []
      const nothing: object[] = []
      const open: OpenPeriod[] = []
      const moment = openMoment(ports.ledger)
      if (checkpoint !== undefined && !(await ports.ledger.hasChange(checkpoint.id)))
        return answerProblem(reply, behind)
      for (const id of subjects) {
        const found = await findBilled(state.policy, id, ports.ledger)
        if (found === undefined) {
          open.push({ subject: id, because: ['neither the policy nor its history has this subject'] })
          continue
        }
        const closing = { ...found, month, graceMs, acceptGaps }
        const one = await closeMonth(ports.ledger, moment, closing, ports.clock.nowMs())
        if (one.kind === 'open') open.push({ subject: id, because: one.because })
        else if (one.kind === 'nothing') nothing.push({ path: id, message: one.because })
        else items.push(summaryOf(one.invoice))
      }
      if (open.length === 0) return { items, nothing }
      return answerProblem(reply, { ...periodOpen(month, open), items, nothing })
    }),
  )
}
