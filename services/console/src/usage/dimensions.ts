import { usageDimensions } from '@weir/api/query/columns.ts'
import { widened } from '@weir/api/query/fill.ts'
import { isPosition, positionOf, sortKeyOf } from '@weir/api/query/ranking.ts'
import { listOf } from '@weir/api/query/read-parameters.ts'
import { isUnitColumn, parseUnitQuery } from '@weir/api/query/unit-query.ts'
import { parseUsageQuery, type UsageQuery } from '@weir/api/query/usage-query.ts'
import { listValues, sumNames, type UsageRow } from '@weir/api/usage.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { cursorInvalid } from '../http/cursor.ts'
import { openPages } from '../http/page.ts'
import { answerProblem, unknownName, usageUnavailable } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness } from './completeness.ts'
import { jsonWithNumbers } from './exact-numbers.ts'
import { unitSource } from './unit-queries.ts'
import { usageSource } from './usage-queries.ts'

/** Values of a page: a person chooses one of them, or types more of its name. */
const pageMax = 100
const unanswered = { what: 'the values of a column could not be read', problem: usageUnavailable(askAgain) }

/** `GET /v1/dimensions/{name}`: which values a column of usage had, and how often, for those who fill in a filter. */
export function registerDimensions(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, listValues, unanswered, async (request, reply) => {
    const { reach } = request
    const { prefix, after: _, ...asked } = request.query
    if (!reach.coversNow([...listOf(asked.subject), ...listOf(asked.within)]))
      return answerProblem(reply, subjectForbidden(request))
    const { name } = request.params
    const isOfUnits = name === 'dimension' || isUnitColumn(name)
    if (!isOfUnits && !usageDimensions.some((one) => one === name))
      return answerProblem(reply, unknownName('column', name))
    const pages = openPages(request, `/v1/dimensions/${name}`, request.query, sources.clock.nowMs())
    // The names of labels are no column of a question: a record is in the row of each of its labels.
    const ranked = { ...asked, by: name === 'dimension' ? 'meter' : name, step: 'total', order: '-count' }
    const parsed = (isOfUnits ? parseUnitQuery : parseUsageQuery)(ranked, { nowMs: pages.atMs, isNarrow: reach.isOwn })
    if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
    const query = { ...parsed.query, by: [name], ...(prefix === undefined ? {} : { namePrefix: prefix }) } as UsageQuery
    const order = sortKeyOf(query)
    if (pages.isAstray((position) => isPosition(order, position))) return answerProblem(reply, cursorInvalid)
    // First: what comes in between the two is then more than was claimed, and never less.
    const completeness = await sources.usage.askCompleteness('decisions')
    const ask = isOfUnits ? sources.usage.askUnits : sources.usage.askUsage
    const found: readonly Pick<UsageRow, 'subject' | 'count'>[] = await ask(reach, query, {
      after: pages.after,
      rowsMax: pageMax + 1,
    })
    const { rows, next } = pages.cut(reply, found, pageMax, (last) => positionOf(order, { ...last }))
    const { table, bucketMs } = isOfUnits ? unitSource(query) : usageSource(reach, query)
    const { fromMs, toMs } = widened(query, bucketMs)
    const body = {
      from: iso(fromMs),
      to: iso(toMs),
      source: table,
      ...shownCompleteness(completeness, reach),
      next,
      items: rows.map((row) => ({ value: row[name as 'subject'] ?? '', count: row.count })),
    }
    return reply.type('application/json; charset=utf-8').send(jsonWithNumbers(body, sumNames))
  })
}
