import { usageSource } from '@weir/clickhouse/usage-queries.ts'
import { isPlace, placeOf, sortKeyOf } from '@weir/core/usage/ranking.ts'
import { listOf } from '@weir/core/usage/read-parameters.ts'
import { parseUsageQuery, usageDimensions } from '@weir/core/usage/usage-query.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, unknownName, usageUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, closed, object, operation, page, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { jsonWithNumbers } from './exact-numbers.ts'
import { completeness, shownSilent, sumNames, time } from './usage-schemas.ts'

/** Values of a page: a person chooses one of them, or types more of its name. */
const pageMax = 100
const unavailable = usageUnavailable('ClickHouse did not answer. Ask again; it is safe to repeat.')

const answered = object({
  from: text('RFC 3339, widened'),
  to: text('RFC 3339, widened'),
  source: text('the table'),
  ...completeness,
  ...page(object({ value: text('as in filters'), count: { type: 'integer', description: 'decisions' } })).properties,
})

interface Asked {
  readonly prefix?: string
  readonly subject?: readonly string[]
  readonly from?: string
  readonly to?: string
  readonly time_zone?: string
  readonly after?: string
}

const query = {
  prefix: { type: 'string', maxLength: 512, description: 'only values that begin so' },
  subject: { type: 'array', maxItems: 100, items: { type: 'string' }, description: 'only of these subjects' },
  from: text('as in /v1/usage; 24 hours before `to` if absent'),
  to: text('the same; now if absent'),
  time_zone: text('where dates begin; UTC if absent'),
  after: text('`next` of the page before'),
}
const described = operation('usage', 'usage', 'The values of a column of usage, the most frequent first', {
  params: object({ name: text(usageDimensions.join(', ')) }),
  query,
  described: { querystring: closed({ ...query, from: time(query.from.description), to: time(query.to.description) }) },
  reach: 'own',
  response: { 200: answer('A page of values', answered), ...problems(404, 422, 503, 504) },
})

/** `GET /v1/dimensions/{name}`: which values a column of usage had, and how often, for those who fill in a filter. */
export function registerDimensions(app: FastifyInstance, ports: Ports): void {
  app.get<{ Params: { name: string }; Querystring: Asked }>(
    '/v1/dimensions/:name',
    described,
    orUnavailable(
      'the values of a column could not be read',
      unavailable,
    )(async (request, reply) => {
      const { reach, by } = request
      const { prefix, after: given, ...asked } = request.query
      if (!reach.covers(listOf(asked.subject))) return answerProblem(reply, subjectForbidden(request))
      const name = usageDimensions.find((one) => one === request.params.name)
      if (name === undefined) return answerProblem(reply, unknownName('column', request.params.name))
      const path = `/v1/dimensions/${name}`
      const owner = { path, given: { ...asked, prefix }, by, reach }
      const cursor = given === undefined ? undefined : readCursor(given, owner)
      const atMs = cursor?.atMs ?? ports.clock.nowMs()
      const ranked = { ...asked, by: name, step: 'total', order: '-count' }
      const parsed = parseUsageQuery(ranked, { nowMs: atMs, isNarrow: reach.isOwn })
      if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
      const query = { ...parsed.query, ...(prefix === undefined ? {} : { namePrefix: prefix }) }
      const order = sortKeyOf(query)
      const after = cursor?.place
      if (given !== undefined && !(after !== undefined && isPlace(order, after))) {
        return answerProblem(reply, cursorInvalid)
      }
      // First: what comes in between the two is then more than was claimed, and never less.
      const { completeThroughMs, silent } = await ports.askCompleteness('decisions')
      const found = await ports.askUsage(reach, query, { after, rowsMax: pageMax + 1 })
      const rows = found.slice(0, pageMax)
      const last = found.length > rows.length ? rows.at(-1) : undefined
      const next = last === undefined ? null : writeCursor(owner, { atMs, place: placeOf(order, { ...last }) })
      if (next !== null) reply.header('link', linkOf(path, request.url, next))
      const { table, bucketMs } = usageSource(reach, query)
      const body = {
        from: new Date(Math.floor(query.fromMs / bucketMs) * bucketMs).toISOString(),
        to: new Date(Math.ceil(query.toMs / bucketMs) * bucketMs).toISOString(),
        source: table,
        complete_through: completeThroughMs === undefined ? null : new Date(completeThroughMs).toISOString(),
        silent: shownSilent(silent, reach),
        next,
        items: rows.map((row) => ({ value: row[name] ?? '', count: row.count })),
      }
      return reply.type('application/json; charset=utf-8').send(jsonWithNumbers(body, sumNames))
    }),
  )
}
