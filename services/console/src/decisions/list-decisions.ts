import { decisionDimensions, parseDecisionQuery } from '@weir/core/usage/decision-query.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { type CursorPlace, cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, decisionsUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, object, pageQuery, problems, text, textOrNull } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { completeness, filterQuery, shownSilent, time } from '../usage/usage-schemas.ts'
import { shownDecision } from './shown-decision.ts'

const path = '/v1/decisions'
const whole = (description: string) => ({ type: 'integer', description })

/** The parameters that say which decisions are meant, whenever they were made. */
export const decisionFilterQuery = {
  ...filterQuery(decisionDimensions),
  subject_prefix: { type: 'string', maxLength: 512, description: 'only subjects that begin so' },
  min_cost: { type: 'integer', minimum: 0, description: 'only requests that cost at least so many units' },
}

const query = {
  type: 'object',
  properties: {
    ...decisionFilterQuery,
    status: {
      type: 'array',
      maxItems: 100,
      items: { type: 'integer', minimum: 100, maximum: 999 },
      description: 'only those whose upstream answered so; several times: with any of them',
    },
    corrected: { type: 'boolean', default: false, description: 'only those that were corrected later' },
    from: time('RFC 3339, a date, which begins in `time_zone`, `now` or `now-24h`; an hour before `to` if absent'),
    to: time('the same; now if absent. At most 24 hours, 31 days with `subject`, `key_id` or `ip`'),
    time_zone: { type: 'string', default: 'UTC', description: 'IANA' },
    limit: pageQuery.limit,
    after: { type: 'string', description: '`next` of the page before, with the same question' },
  },
}

const limit = object({
  name: text('of the limit'),
  size: whole('units'),
  used: whole('units'),
  remaining: whole('units'),
  reset_ms: whole('from `ts` on'),
  by: { type: 'object', additionalProperties: { type: 'string' }, description: 'what it counted by' },
})

/** A decision, as a list and a stream show it. */
const shownSchemas = {
  id: text('as in the header Weir-Decision'),
  ts: text('RFC 3339'),
  subject: text('whose'),
  key_id: text('with'),
  plan: text('then'),
  route: text('its template'),
  method: text('of the request'),
  cost: whole('units'),
  count: whole('equal refusals that the record stands for'),
  outcome: text('allow or deny'),
  reason: text('as in the record'),
  mode: text('enforce or shadow'),
  charged: text('yes, no or unknown'),
  denied_by: text('name of the limit'),
  ip: text('as recorded'),
  retry_ms: { type: ['integer', 'null'], description: 'the wait that was promised; -1: waiting does not help' },
  shadowed_by: text('name of the limit in shadow; absent for callers limited to subjects'),
  limits: { type: 'array', items: limit, description: 'absent for callers limited to subjects' },
}
/** What of a decision is not shown to every caller. */
const notAlwaysShown = ['shadowed_by', 'limits']

const row = object(
  {
    ...shownSchemas,
    outcome_record: {
      ...object({
        status: whole('as the client got it'),
        duration_ms: { type: 'number' },
        upstream: text('its name'),
        error: text('empty: the answer went out whole'),
      }),
      type: ['object', 'null'],
      description: 'what the upstream answered; null: nothing, or not yet',
    },
    corrections: {
      type: 'array',
      items: object({ id: text('of the record'), adjustment: whole('units'), charged: text('yes, no or unknown') }),
    },
  },
  notAlwaysShown,
)

const schema = {
  tags: ['decisions'],
  summary: 'Decisions, the newest first',
  querystring: query,
  response: {
    200: answer(
      'A page of decisions',
      object({
        from: text('RFC 3339'),
        to: text('RFC 3339'),
        ...completeness,
        next: textOrNull('`after` of the next page; null on the last'),
        rows: { type: 'array', items: row },
      }),
    ),
    ...problems(422, 503, 504),
  },
}

const unavailable = decisionsUnavailable('ClickHouse did not answer. Ask again; it is safe to repeat.')

/** Reads where the page before ended; undefined if no list of decisions ends so. */
function placeOf({ place: [tsMs = '', id = ''] }: CursorPlace) {
  return /^\d{1,15}$/.test(tsMs) ? { tsMs: Number(tsMs), id } : undefined
}

/** `GET /v1/decisions`: decisions one by one, the newest first. */
export function registerDecisionList(app: FastifyInstance, ports: Ports): void {
  app.get<{ Querystring: Record<string, string | string[]> }>(
    path,
    {
      config: { scope: 'usage', reach: 'own' },
      schema,
      // The parser below reports everything that is wrong in one answer.
      validatorCompiler: () => () => true,
    },
    orUnavailable(
      'decisions could not be listed',
      unavailable,
    )(async (request, reply) => {
      const { query: given, by, reach } = request
      const owner = { path, given, by, reach }
      const cursor = typeof given.after === 'string' ? readCursor(given.after, owner) : undefined
      const atMs = cursor?.atMs ?? ports.clock.nowMs()
      const parsed = parseDecisionQuery(given, atMs, reach.isOwn)
      if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
      const { fromMs, toMs, only, limit: rowsMax } = parsed.query
      if (!reach.covers(only.subject ?? [])) return answerProblem(reply, subjectForbidden(request))
      const after = cursor === undefined ? undefined : placeOf(cursor)
      if (given.after !== undefined && after === undefined) return answerProblem(reply, cursorInvalid)
      // First: what comes in between the two is then more than was claimed, and never less.
      const { completeThroughMs, silent } = await ports.askCompleteness('decisions')
      // One more than the page has says whether there is a next one.
      const found = await ports.decisions.list(reach, parsed.query, { after, rowsMax: rowsMax + 1 })
      const rows = found.slice(0, rowsMax)
      const last = found.length > rows.length ? rows.at(-1)?.row : undefined
      const next = last === undefined ? null : writeCursor(owner, { atMs, place: [String(last.ts_ms), last.id] })
      if (next !== null) reply.header('link', linkOf(path, request.url, next))
      return {
        from: new Date(fromMs).toISOString(),
        to: new Date(toMs).toISOString(),
        complete_through: completeThroughMs === undefined ? null : new Date(completeThroughMs).toISOString(),
        silent: shownSilent(silent, reach),
        next,
        rows: rows.map((one) => ({
          ...shownDecision(one.row, reach),
          outcome_record: one.outcome ?? null,
          corrections: one.corrections,
        })),
      }
    }),
  )
}
