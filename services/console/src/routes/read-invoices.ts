import { hash } from 'node:crypto'
import { isUuid } from '@weir/contracts/fields.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, unknown, usageUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import {
  answer,
  anyObject,
  object,
  operation,
  type PageQuery,
  page,
  pageOf,
  pageQuery,
  problems,
  text,
} from '../http/schemas.ts'
import { invoiceCsv, ownDocument } from '../invoice-document.ts'
import type { Ports } from '../ports.ts'

/** An invoice in a list. */
export const invoiceSummary = object({
  id: text('follows from subject and period'),
  subject: text('whose'),
  period: text('2026-11'),
  from: text('RFC 3339'),
  to: text('RFC 3339'),
  closed_at: text('RFC 3339'),
  sha256: text('of the document, as callers who are limited to no subject read it'),
})

const path = '/v1/invoices'
const down = usageUnavailable('ClickHouse did not answer. Ask again; it is safe to repeat.')

interface List {
  readonly Querystring: PageQuery & { readonly subject?: string; readonly period?: string }
}

/** `GET /v1/invoices`: what was closed, by subject and period. */
function registerList(app: FastifyInstance, ports: Ports): void {
  const month = { ...text('only of this month: 2026-11'), pattern: '^\\d{4}-(0[1-9]|1[0-2])$' }
  app.get<List>(
    path,
    operation('billing', 'invoices', 'The invoices that were closed, by subject and period', {
      query: { ...pageQuery, subject: text('only of this one'), period: month },
      response: { 200: answer('A page of them', page(invoiceSummary)), ...problems(503) },
      reach: 'own',
    }),
    orUnavailable(
      'invoices could not be read',
      down,
    )(async (request, reply) => {
      const { query, by, reach } = request
      const { subject, period, limit, after: text } = query
      if (subject !== undefined && !reach.covers([subject])) return answerProblem(reply, subjectForbidden(request))
      const asked = { ...(subject === undefined ? {} : { subject }), ...(period === undefined ? {} : { period }) }
      const owner = { path, given: asked, by, reach }
      const cursor = text === undefined ? undefined : readCursor(text, owner)
      if (text !== undefined && cursor === undefined) return answerProblem(reply, cursorInvalid)
      const [afterSubject = '', afterPeriod = ''] = cursor?.place ?? []
      const after = cursor === undefined ? undefined : { subject: afterSubject, period: afterPeriod }
      // One more than the page has says whether there is a next one.
      const found = await ports.ledger.listInvoices(reach, { subject, period, after, rowsMax: limit + 1 })
      const listed = pageOf(found, limit, (last) => writeCursor(owner, { atMs: 0, place: [last.subject, last.period] }))
      if (listed.next !== null) reply.header('link', linkOf(path, request.url, listed.next))
      return listed
    }),
  )
}

/** `GET /v1/invoices/{id}`: one of them, equal to the byte for ever. */
function registerOne(app: FastifyInstance, ports: Ports): void {
  app.get<{ Params: { readonly id: string }; Querystring: { readonly format?: string } }>(
    `${path}/:id`,
    operation('billing', 'invoices', 'One invoice, equal to the byte for ever: JSON, or CSV with Accept: text/csv', {
      params: object({ id: text('of the invoice') }),
      query: { format: { type: 'string', enum: ['json', 'csv'], description: 'goes before Accept' } },
      response: {
        200: {
          description: 'The document, as its sha256 names it',
          content: { 'application/json': { schema: anyObject }, 'text/csv': { schema: { type: 'string' } } },
        },
        ...problems(404, 503),
      },
      reach: 'own',
      described: { params: object({ id: { ...text('of the invoice'), format: 'uuid' } }) },
    }),
    orUnavailable(
      'an invoice could not be read',
      down,
    )(async ({ params, query: { format }, headers: { accept = '' }, reach }, reply) => {
      const id = params.id.toLowerCase()
      if (!isUuid(id)) return answerProblem(reply, badRequest('An invoice has a UUID; GET /v1/invoices lists them.'))
      const found = await ports.ledger.readInvoice(reach, id)
      if (found === undefined) return answerProblem(reply, unknown('There is no invoice of this id.'))
      // As stored: nothing parses it and writes it again, but for what its own subject is not shown.
      const [document, sha256] = reach.isOwn ? own(found.document) : [found.document, found.sha256]
      reply.header('vary', 'accept')
      if (format === 'csv' || (format === undefined && accept.includes('text/csv'))) {
        return reply.type('text/csv; charset=utf-8; header=present').send(invoiceCsv(document))
      }
      return reply
        .header('content-type', 'application/json; charset=utf-8')
        .header('etag', `"${sha256}"`)
        .serializer((text: unknown) => String(text))
        .send(document)
    }),
  )
}

function own(stored: string): readonly [string, string] {
  const document = ownDocument(stored)
  return [document, hash('sha256', document, 'hex')]
}

/** `GET /v1/invoices` and `/v1/invoices/{id}` read what was closed; callers limited to subjects, what is theirs. */
export function registerInvoiceReading(app: FastifyInstance, ports: Ports): void {
  registerList(app, ports)
  registerOne(app, ports)
}
