import { listDecisions } from '@weir/api/decisions.ts'
import { parseDecisionQuery } from '@weir/api/query/decision-query.ts'
import type { GivenParameters } from '@weir/api/query/read-parameters.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { type CursorPosition, cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, decisionsUnavailable } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness } from '../usage/completeness.ts'
import { shownDecision } from './shown-decision.ts'

const { path } = listDecisions
const unanswered = { what: 'decisions could not be listed', problem: decisionsUnavailable(askAgain) }

/** Reads where the page before ended; undefined if no list of decisions ends so. */
function positionOf({ position: [tsMs = '', id = ''] }: CursorPosition) {
  return /^\d{1,15}$/.test(tsMs) ? { tsMs: Number(tsMs), id } : undefined
}

/** `GET /v1/decisions`: decisions one by one, the newest first. */
export function registerDecisionList(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, listDecisions, unanswered, async (request, reply) => {
    const { by, reach } = request
    const given = request.query as GivenParameters
    const owner = { path, given, by, reach }
    const cursor = typeof given.after === 'string' ? readCursor(given.after, owner) : undefined
    const atMs = cursor?.atMs ?? sources.clock.nowMs()
    const parsed = parseDecisionQuery(given, atMs, reach.isOwn)
    if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
    const { fromMs, toMs, only, limit: rowsMax } = parsed.query
    if (!reach.covers(only.subject ?? [])) return answerProblem(reply, subjectForbidden(request))
    const after = cursor === undefined ? undefined : positionOf(cursor)
    if (given.after !== undefined && after === undefined) return answerProblem(reply, cursorInvalid)
    // First: what comes in between the two is then more than was claimed, and never less.
    const completeness = await sources.usage.askCompleteness('decisions')
    // One more than the page has says whether there is a next one.
    const found = await sources.decisions.list(reach, parsed.query, { after, rowsMax: rowsMax + 1 })
    const rows = found.slice(0, rowsMax)
    const last = found.length > rows.length ? rows.at(-1)?.row : undefined
    const next = last === undefined ? null : writeCursor(owner, { atMs, position: [String(last.ts_ms), last.id] })
    if (next !== null) reply.header('link', linkOf(path, request.url, next))
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
