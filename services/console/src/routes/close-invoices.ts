import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { pricesOf } from '@weir/policy/policy.ts'
import { durationPattern, parseDurationMs } from '@weir/policy/policy-values.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { closeMonth } from '../close-month.ts'
import { answerProblem, periodOpen, policyUnread, unknown, usageUnavailable } from '../http/problems.ts'
import { answer, anyObject, closed, object, operation, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

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

const summary = object({
  id: text('follows from subject and period'),
  subject: text('whose'),
  period: text('2026-11'),
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  closed_at: text('RFC 3339'),
  sha256: text('of the document'),
})
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

/** `POST /v1/invoices` closes a month; `GET /v1/invoices` and `/v1/invoices/{id}` read what was closed, to the byte. */
export function registerClosing(app: FastifyInstance, ports: Ports): void {
  app.post<Close>(
    '/v1/invoices',
    operation('billing', 'invoices', 'Close a month of these subjects', {
      body,
      response: {
        200: answer('Closed, now or before', object({ items: { type: 'array', items: summary } })),
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
  registerReading(app, ports)
}

function registerReading(app: FastifyInstance, ports: Ports): void {
  app.get<{ Querystring: { readonly subject: string } }>(
    '/v1/invoices',
    operation('billing', 'invoices', 'The invoices of a subject, by their periods', {
      query: { subject: text('whose') },
      required: ['subject'],
      response: { 200: answer('All of them', object({ items: { type: 'array', items: summary } })), ...problems(503) },
    }),
    async ({ query: { subject }, log }, reply) => {
      try {
        return { items: (await ports.ledger.readInvoicesOf(subject)).map(summaryOf) }
      } catch (error) {
        log.error({ err: error }, 'invoices could not be read')
        return answerProblem(reply, down)
      }
    },
  )
  app.get<{ Params: { readonly id: string } }>(
    '/v1/invoices/:id',
    operation('billing', 'invoices', 'One invoice, equal to the byte for ever', {
      params: object({ id: { ...text('of the invoice'), format: 'uuid' } }),
      response: { 200: answer('The document, as its sha256 names it', anyObject), ...problems(404, 503) },
    }),
    async ({ params: { id }, log }, reply) => {
      try {
        const found = await ports.ledger.readInvoice(id)
        if (found === undefined) return answerProblem(reply, unknown(`There is no invoice ${id}`))
        // As stored: nothing parses it and writes it again.
        return reply
          .header('content-type', 'application/json; charset=utf-8')
          .header('etag', `"${found.sha256}"`)
          .serializer((document: unknown) => String(document))
          .send(found.document)
      } catch (error) {
        log.error({ err: error }, 'an invoice could not be read')
        return answerProblem(reply, down)
      }
    },
  )
}
