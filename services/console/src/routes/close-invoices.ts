import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { pricesOf } from '@weir/policy/policy.ts'
import { durationPattern, parseDurationMs } from '@weir/policy/policy-values.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { closeMonth } from '../close-month.ts'
import { answerProblem, periodOpen, policyUnread, unknown, usageUnavailable } from '../http/problems.ts'
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

/** `POST /v1/invoices` closes a month. */
export function registerClosing(app: FastifyInstance, ports: Ports): void {
  app.post<Close>(
    '/v1/invoices',
    operation('billing', 'invoices', 'Close a month of these subjects', {
      body,
      response: {
        200: answer('Closed, now or before', object({ items: { type: 'array', items: invoiceSummary } })),
        ...problems(404, 409, 503),
      },
    }),
    async ({ body: { period: month, subjects, grace, accept_gaps: acceptGaps }, log }, reply) => {
      const { state } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const graceMs = parseDurationMs(grace)
      if (graceMs === undefined) return answerProblem(reply, badRequest('grace must be a duration such as 1h or 2d'))
      const items: object[] = []
      try {
        for (const id of subjects) {
          const subject = state.policy.subjects.get(id)
          const prices = subject === undefined ? undefined : pricesOf(state.policy, subject)
          if (subject === undefined || prices === undefined) {
            return answerProblem(reply, unknown(`There is no subject ${JSON.stringify(id)} with a price list`))
          }
          const one = await closeMonth(
            ports.ledger,
            { subject, prices, month, graceMs, acceptGaps },
            ports.clock.nowMs(),
          )
          if (one.kind === 'open') return answerProblem(reply, periodOpen(id, month, one.because))
          items.push(summaryOf(one.invoice))
        }
        return { items }
      } catch (error) {
        log.error({ err: error, month }, 'a month could not be closed')
        return answerProblem(reply, down)
      }
    },
  )
}
