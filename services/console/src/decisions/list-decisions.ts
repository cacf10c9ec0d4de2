import { listDecisions } from '@weir/api/decisions.ts'
import { parseDecisionQuery } from '@weir/api/query/decision-query.ts'
import type { GivenParameters } from '@weir/api/query/read-parameters.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { cursorInvalid } from '../http/cursor.ts'
import { openPages } from '../http/page.ts'
import { answerProblem, decisionsUnavailable } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness } from '../usage/completeness.ts'
import { shownDecision } from './shown-decision.ts'

const unanswered = { what: 'decisions could not be listed', problem: decisionsUnavailable(askAgain) }

/** `GET /v1/decisions`: decisions one by one, the newest first. */
export function registerDecisionList(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, listDecisions, unanswered, async (request, reply) => {
    const { reach } = request
    const given = request.query as GivenParameters
    const pages = openPages(request, listDecisions.path, given, sources.clock.nowMs())
    const parsed = parseDecisionQuery(given, pages.atMs, reach.isOwn)
    if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
    const { fromMs, toMs, only, limit: rowsMax } = parsed.query
    if (!reach.coversNow(only.subject ?? [])) return answerProblem(reply, subjectForbidden(request))
    if (pages.isAstray(([tsMs = '']) => /^\d{1,15}$/.test(tsMs))) return answerProblem(reply, cursorInvalid)
    const [tsMs, id = ''] = pages.after ?? []
    const after = tsMs === undefined ? undefined : { tsMs: Number(tsMs), id }
    // First: what comes in between the two is then more than was claimed, and never less.
    const completeness = await sources.usage.askCompleteness('decisions')
    // One more than the page has says whether there is a next one.
    const found = await sources.decisions.list(reach, parsed.query, { after, rowsMax: rowsMax + 1 })
    const { rows, next } = pages.cut(reply, found, rowsMax, ({ row }) => [String(row.ts_ms), row.id])
    return {
      from: iso(fromMs),
      to: iso(toMs),
      ...shownCompleteness(completeness, reach),
      next,
      rows: rows.map((one) => ({
        ...shownDecision(one.row, reach),
        outcome_record: one.outcome ?? null,
        corrections: one.corrections,
      })),
    }
  })
}
