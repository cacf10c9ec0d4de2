import { type UtilizationRow, utilizationBucketMs } from '@weir/clickhouse/utilization-queries.ts'
import {
  isUtilizationPlace,
  parseUtilizationQuery,
  utilizationFilters,
  utilizationOrders,
  utilizationPlace,
} from '@weir/core/usage/utilization-query.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { cursorInvalid, linkOf, readCursor, writeCursor } from '../http/cursor.ts'
import { answerProblem, policyUnread, usageUnavailable } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, object, pageQuery, problems, text, textOrNull } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { jsonWithNumbers } from './exact-numbers.ts'
import { createRunsOut } from './quota-forecast.ts'
import { completeness, filterQuery, gaps, shownGaps, shownSilent, time } from './usage-schemas.ts'

const path = '/v1/utilization'
/** How fast quotas are used is the mean of so long. */
const paceMs = 7 * 86_400_000
const unavailable = usageUnavailable('ClickHouse did not answer. Ask again; it is safe to repeat.')
const iso = (ms: number) => new Date(ms).toISOString()

const share = (description: string) => ({ type: 'number', minimum: 0, description: `${description}, 0.8 for 80 %` })
const count = (description: string) => ({
  type: ['integer', 'string'],
  description: `${description}; text if so asked`,
})
const counts = {
  used: count('units in use then; of a limit that counts by more than the subject, of its fullest count'),
  size: count('of the limit, then'),
  count: count('decisions that met the limit'),
  refused: count('decisions that it refused'),
  shadow_refused: count('decisions that it would have refused, were it not in shadow'),
  cost: count('units of allowed decisions, without corrections'),
}
const countNames: ReadonlySet<string> = new Set(Object.keys(counts))

const row = object({
  subject: text('whose'),
  limit: text('name of the limit'),
  share: share('the largest part of its size that was in use at one time'),
  ...counts,
  at: text('RFC 3339: start of the last quarter hour that had this share'),
  runs_out: textOrNull(
    'RFC 3339: when the quota is used up at the mean pace of 7 days; null: not in its running period',
  ),
})

/** For readers. Requests are judged by the question's own parser, which reports everything in one answer. */
const query = {
  type: 'object',
  properties: {
    ...filterQuery(utilizationFilters),
    subject_prefix: { type: 'string', maxLength: 512, description: 'only subjects that begin so' },
    from: time('RFC 3339, a date, which begins in `time_zone`, `now` or `now-24h`; 24 hours before `to` if absent'),
    to: time('the same; now if absent'),
    time_zone: { type: 'string', default: 'UTC', description: 'IANA' },
    share_from: share('only rows with at least this share'),
    share_to: share('only rows with less than this share'),
    order: {
      type: 'string',
      enum: utilizationOrders.flatMap((name) => [name, `-${name}`]),
      default: '-share',
      description: 'what rows are sorted by; with - the largest first',
    },
    numbers: { type: 'string', enum: ['json', 'text'], default: 'json', description: '`text`: counts as text' },
    limit: { ...pageQuery.limit, description: 'rows of a page; `met_limit` takes the name of a limit' },
    after: text('`next` of the page before, with the same question'),
  },
}

const schema = {
  tags: ['usage'],
  summary: 'How near subjects come to their limits',
  querystring: query,
  response: {
    200: answer(
      'A page of subjects with their limits',
      object({
        from: text('RFC 3339, widened'),
        to: text('RFC 3339, widened'),
        source: text('the table'),
        ...completeness,
        gaps,
        next: textOrNull('`after` of the next page; null on the last'),
        rows: { type: 'array', items: row },
      }),
    ),
    ...problems(422, 429, 503, 504),
  },
}

/** `GET /v1/utilization`: the most that each subject used of each limit, what was refused, and when quotas run out. */
export function registerUtilization(app: FastifyInstance, ports: Ports): void {
  app.get<{ Querystring: Record<string, string | string[]> }>(
    path,
    { config: { scope: 'usage' }, schema, validatorCompiler: () => () => true },
    orUnavailable(
      'how near limits are could not be read',
      unavailable,
    )(async (request, reply) => {
      const { query: given, by, reach } = request
      const { state } = ports.policy
      if (state === undefined) return answerProblem(reply, policyUnread)
      const owner = { path, given, by, reach }
      const cursor = typeof given.after === 'string' ? readCursor(given.after, owner) : undefined
      const atMs = cursor?.atMs ?? ports.clock.nowMs()
      const parsed = parseUtilizationQuery(given, atMs)
      if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
      const { query: asked } = parsed
      const after = cursor?.place
      if (given.after !== undefined && !(after !== undefined && isUtilizationPlace(asked, after))) {
        return answerProblem(reply, cursorInvalid)
      }
      const [fromMs, toMs, paceFromMs] = [asked.fromMs, asked.toMs + utilizationBucketMs - 1, atMs - paceMs].map(
        (ms) => Math.floor(ms / utilizationBucketMs) * utilizationBucketMs,
      ) as [number, number, number]
      // First: what comes in between the two is then more than was claimed, and never less.
      const { completeThroughMs, silent } = await ports.askCompleteness('decisions')
      const [found, missing] = await Promise.all([
        ports.askUtilization(reach, asked, { after, rowsMax: asked.limit + 1, paceFromMs }),
        ports.readGaps('decisions', { fromMs, toMs }),
      ])
      const rows = found.slice(0, asked.limit)
      const last = found.length > rows.length ? rows.at(-1) : undefined
      const next = last === undefined ? null : writeCursor(owner, { atMs, place: utilizationPlace(asked, last) })
      if (next !== null) reply.header('link', linkOf(path, request.url, next))
      const runsOut = createRunsOut(state.policy, { nowMs: atMs, paceFromMs })
      const shown = (one: UtilizationRow) => {
        const { at_ms: at, pace_cost: _, last_ms: __, last_used: ___, ...rest } = one
        const outMs = runsOut(one)
        return { ...rest, at: iso(at), runs_out: outMs === undefined ? null : iso(outMs) }
      }
      const body = {
        from: iso(fromMs),
        to: iso(toMs),
        source: 'limits_15m',
        complete_through: completeThroughMs === undefined ? null : iso(completeThroughMs),
        silent: shownSilent(silent, reach),
        gaps: shownGaps(missing, reach),
        next,
        rows: rows.map(shown),
      }
      const written = asked.sumsAreText ? JSON.stringify(body) : jsonWithNumbers(body, countNames)
      return reply.type('application/json; charset=utf-8').send(written)
    }),
  )
}
