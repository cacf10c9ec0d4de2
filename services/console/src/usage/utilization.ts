import { widened } from '@weir/api/query/fill.ts'
import type { GivenParameters } from '@weir/api/query/read-parameters.ts'
import { isUtilizationPosition, parseUtilizationQuery, utilizationPosition } from '@weir/api/query/utilization-query.ts'
import { getUtilization, utilizationCountNames } from '@weir/api/utilization.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { cursorInvalid } from '../http/cursor.ts'
import { openPages } from '../http/page.ts'
import { answerProblem, policyUnread, usageUnavailable } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'
import { iso, shownCompleteness, shownGaps } from './completeness.ts'
import { jsonWithNumbers } from './exact-numbers.ts'
import { createRunsOut } from './quota-forecast.ts'
import { type UtilizationRow, utilizationBucketMs } from './utilization-queries.ts'

/** How fast quotas are used is the mean of so long. */
const paceMs = 7 * 86_400_000
const unanswered = { what: 'utilization could not be read', problem: usageUnavailable(askAgain) }

/** `GET /v1/utilization`: the most that each subject used of each limit, what was refused, and when quotas run out. */
export function registerUtilization(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, getUtilization, unanswered, async (request, reply) => {
    const { reach } = request
    const given = request.query as GivenParameters
    const { state } = sources.policy
    if (state === undefined) return answerProblem(reply, policyUnread)
    const pages = openPages(request, getUtilization.path, given, sources.clock.nowMs())
    const { atMs, after } = pages
    const parsed = parseUtilizationQuery(given, atMs)
    if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
    const { query: asked } = parsed
    if (pages.isAstray((position) => isUtilizationPosition(asked, position))) return answerProblem(reply, cursorInvalid)
    const { fromMs, toMs } = widened(asked, utilizationBucketMs)
    const paceFromMs = Math.floor((atMs - paceMs) / utilizationBucketMs) * utilizationBucketMs
    // First: what comes in between the two is then more than was claimed, and never less.
    const completeness = await sources.usage.askCompleteness('decisions')
    const [found, missing] = await Promise.all([
      sources.usage.askUtilization(reach, asked, { after, rowsMax: asked.limit + 1, paceFromMs }),
      sources.usage.readGaps('decisions', { fromMs, toMs }),
    ])
    const { rows, next } = pages.cut(reply, found, asked.limit, (last) => utilizationPosition(asked, last))
    const runsOut = createRunsOut(state.policy, { nowMs: atMs, paceFromMs })
    const shown = (one: UtilizationRow) => {
      const { at_ms: at, pace_cost: _, last_ms: __, last_used: ___, ...rest } = one
      const outMs = runsOut(one)
      return {
        ...rest,
        at: iso(at),
        runs_out: outMs === undefined ? null : iso(outMs),
        removed: !state.policy.limits.has(one.limit),
      }
    }
    const body = {
      from: iso(fromMs),
      to: iso(toMs),
      source: 'limits_15m',
      ...shownCompleteness(completeness, reach),
      gaps: shownGaps(missing, reach),
      next,
      rows: rows.map(shown),
    }
    const written = asked.sumsAreText ? JSON.stringify(body) : jsonWithNumbers(body, utilizationCountNames)
    return reply.type('application/json; charset=utf-8').send(written)
  })
}
