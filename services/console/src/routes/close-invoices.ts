import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { durationPattern, parseDurationMs } from '@weir/policy/policy-values.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { type BilledSubject, findBilled } from '../billed-subject.ts'
import { closeMonth, openMoment } from '../close-month.ts'
import {
  answerProblem,
  type OpenPeriod,
  periodOpen,
  policyUnread,
  unknown,
  usageUnavailable,
} from '../http/problems.ts'
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

/** `POST /v1/invoices` closes a month of each subject of which nothing stands in the way. */
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
      const open: OpenPeriod[] = []
      const moment = openMoment(ports.ledger)
      try {
        const billed: BilledSubject[] = []
        for (const id of subjects) {
          const found = await findBilled(state.policy, id, ports.ledger)
          if (found === undefined) {
            return answerProblem(reply, unknown(`There is no subject ${JSON.stringify(id)} with a price list`))
          }
          billed.push(found)
        }
        for (const found of billed) {
          const closing = { ...found, month, graceMs, acceptGaps }
          const one = await closeMonth(ports.ledger, moment, closing, ports.clock.nowMs())
          if (one.kind === 'open') open.push({ subject: found.subject.id, because: one.because })
          else items.push(summaryOf(one.invoice))
        }
        return open.length === 0 ? { items } : answerProblem(reply, { ...periodOpen(month, open), items })
      } catch (error) {
        log.error({ err: error, month }, 'a month could not be closed')
        return answerProblem(reply, down)
      }
    },
  )
}
