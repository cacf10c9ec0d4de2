import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { durationPattern, parseDurationMs } from '@weir/policy/policy-values.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { findBilled } from '../billed-subject.ts'
import { closeMonth, openMoment } from '../close-month.ts'
import { cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, type OpenPeriod, periodOpen, policyUnread, usageUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import {
  answer,
  closed,
  object,
  operation,
  type PageQuery,
  page,
  pageOf,
  pageQuery,
  problems,
  text,
} from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { invoiceSummary } from './read-invoices.ts'

/** Each is some queries of milliseconds, one after the other: a person or a job waits for the answer. */
const subjectsMax = 100

const path = '/v1/invoices'
const month = {
  ...text('the month that begins then in each subject’s own calendar: 2026-11'),
  pattern: '^\\d{4}-(0[1-9]|1[0-2])$',
}
const body = closed(
  {
    period: month,
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
function registerClose(app: FastifyInstance, ports: Ports): void {
  app.post<Close>(
    path,
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

/** A month begins at most so long before it does in UTC. */
const zoneMs = 14 * 3_600_000

/** `GET /v1/invoices/subjects`: whose month may have to be closed although the policy does not say so any more. */
function registerSubjects(app: FastifyInstance, ports: Ports): void {
  const own = `${path}/subjects`
  app.get<{ readonly Querystring: PageQuery & { readonly period: string } }>(
    own,
    operation('billing', 'invoices', 'Who had a price list and changed since a month began, deleted subjects too', {
      query: { ...pageQuery, period: month },
      required: ['period'],
      response: { 200: answer('A page of them', page(object({ subject: text('whose') }))), ...problems(503) },
    }),
    orUnavailable(
      'subjects with a price list could not be read',
      down,
    )(async ({ query: { period, limit, after: text }, by, reach, url }, reply) => {
      const owner = { path: own, given: { period }, by, reach }
      const cursor = text === undefined ? undefined : readCursor(text, owner)
      if (text !== undefined && cursor === undefined) return answerProblem(reply, cursorInvalid)
      const sinceMs = Date.parse(`${period}-01T00:00:00Z`) - zoneMs
      const asked = { sinceMs, after: cursor?.place[0] ?? '', rowsMax: limit + 1 }
      const { checkpoint } = ports.policy
      if (checkpoint !== undefined && !(await ports.ledger.hasChange(checkpoint.id)))
        return answerProblem(reply, behind)
      const found = (await ports.ledger.readPricedSubjects(asked)).map((subject) => ({ subject }))
      const listed = pageOf(found, limit, ({ subject }) => writeCursor(owner, { atMs: 0, place: [subject] }))
      if (listed.next !== null) reply.header('link', linkOf(own, url, listed.next))
      return listed
    }),
  )
}

/** Closes months, and says whose. */
export function registerClosing(app: FastifyInstance, ports: Ports): void {
  registerClose(app, ports)
  registerSubjects(app, ports)
}
