import { answerRowsMax } from '@weir/clickhouse/usage-queries.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import {
  type GivenParameters,
  outcomeDimensions,
  type ParsedQuery,
  parseOutcomeQuery,
  parseUsageQuery,
  type RollupQuery,
  usageDimensions,
  type Values,
} from '@weir/core/usage/usage-query.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { jsonWithNumbers } from '../http/exact-numbers.ts'
import { answerProblem, outcomesUnavailable, usageUnavailable } from '../http/problems.ts'
import { answer, object, problems, text, textOrNull } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const parameter = (description: string) => ({ description })

/** The parameters of a question. Its parser reports everything that is wrong with it in one answer. */
const questionQuery = (dimensions: readonly string[]) => ({
  type: 'object',
  properties: {
    ...Object.fromEntries(
      dimensions.flatMap((name) => [
        [name, parameter('only rows with this value; several times: with any of them')],
        [`not_${name}`, parameter('only rows without this value; several times: without any of them')],
      ]),
    ),
    subject_prefix: parameter('only subjects that begin so'),
    from: parameter('RFC 3339, or a date, which begins in `time_zone`; 24 hours before `to` if absent'),
    to: parameter('the same; now if absent'),
    by: parameter('columns, separated by commas'),
    step: parameter('hour, day, …'),
    time_zone: parameter('IANA'),
    numbers: parameter('`text`: sums as text instead of numbers, for readers whose numbers end at 2^53'),
  },
})

/** The answer to a question whose rows look like this. */
const questionAnswer = (description: string, row: object) =>
  answer(
    description,
    object({
      from: text('RFC 3339'),
      to: text('RFC 3339'),
      step: text('hour, day, …'),
      time_zone: text('of the steps'),
      complete_through: textOrNull(
        'all before it is counted, but for what silent journals hold; null: nothing is known yet',
      ),
      silent: {
        type: 'array',
        description: 'journals that have said nothing for a minute while others did; what they hold is counted later',
        items: object(
          { journal: text('process start; absent for callers limited to subjects'), since: text('its last mark') },
          ['journal'],
        ),
      },
      cut_off: { type: 'boolean', description: 'whether there are more rows than are answered' },
      rows: { type: 'array', items: row },
    }),
  )

const named = text('where `by` names it')
const ts = text('start of the step, with the offset of its zone; absent for `total`')
/** Every digit stands there, also beyond 2^53, where many readers round. */
const sum = (description: string) => ({ type: ['integer', 'string'], description: `${description}; text if so asked` })
const answers = sum('answers')
const quantile = (share: string) => ({
  type: ['number', 'null'],
  description: `milliseconds that ${share} of the answers took at most, within about a hundredth; null: there were none`,
})

const usageNames = {
  ts,
  subject: named,
  key_id: named,
  plan: named,
  route: named,
  method: named,
  outcome: named,
  denied_by: named,
}
const usageRow = {
  ...usageNames,
  count: sum('decisions'),
  allowed: sum('decisions'),
  denied: sum('decisions'),
  cost: sum('units that the allowed ones used, corrections included'),
}

/** The columns of both whose values are sums: ClickHouse's text becomes a number of the same digits. */
const sums = new Set([
  ...['count', 'allowed', 'denied', 'cost', 'broken', 'bytes_in', 'bytes_out'],
  ...['status_1xx', 'status_2xx', 'status_3xx', 'status_4xx', 'status_5xx'],
])

const outcomeNames = { ts, subject: named, route: named, method: named }
const outcomeRow = {
  ...outcomeNames,
  count: answers,
  status_1xx: answers,
  status_2xx: answers,
  status_3xx: answers,
  status_4xx: sum('answers; 499 are those whose client was gone before'),
  status_5xx: answers,
  broken: sum('answers that did not go out whole'),
  bytes_in: sum('of the requests’ bodies'),
  bytes_out: sum('of the answers’ bodies'),
  p50_ms: quantile('half'),
  p90_ms: quantile('90 %'),
  p99_ms: quantile('99 %'),
}

/** One kind of query of the rollups. */
interface RollupRoute<Dimension extends string> {
  readonly path: string
  readonly dimensions: readonly Dimension[]
  readonly summary: string
  readonly description: string
  readonly row: Readonly<Record<string, object>>
  /** Columns of a row that only some queries ask for. */
  readonly optional: readonly string[]
  readonly unavailable: (detail: string) => Problem
  readonly rows: 'decisions' | 'outcomes'
  readonly parse: (given: GivenParameters, nowMs: number) => ParsedQuery<Dimension>
  readonly ask: (reach: Reach, query: RollupQuery<Dimension>) => Promise<readonly object[]>
}

/** The subjects that a question names. */
const namedSubjects = (only: Values<string>): readonly string[] => only.subject ?? []

const iso = (ms: number) => new Date(ms).toISOString()
const noAnswer = 'ClickHouse did not answer. Nothing is lost meanwhile; ask again later.'

function register<Dimension extends string>(app: FastifyInstance, ports: Ports, route: RollupRoute<Dimension>): void {
  const { path, dimensions, summary, description, row, optional, unavailable, rows: kind, parse, ask } = route
  app.get<{ Querystring: Record<string, string | string[]> }>(
    path,
    {
      config: { scope: 'usage', reach: 'own' },
      schema: {
        tags: ['usage'],
        summary,
        querystring: questionQuery(dimensions),
        response: { 200: questionAnswer(description, object(row, optional)), ...problems(503) },
      },
    },
    async (request, reply) => {
      const parsed = parse(request.query, ports.clock.nowMs())
      if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
      const { reach } = request
      const { query, form } = parsed
      const { only, fromMs, toMs, step, timeZone } = query
      // Whether there is such a subject or not: nothing was looked up.
      if (!reach.covers(namedSubjects(only))) return answerProblem(reply, subjectForbidden(request))
      try {
        // First: what comes in between the two is then more than was claimed, and never less.
        const { completeThroughMs, silent } = await ports.askCompleteness(kind)
        const rows = await ask(reach, query)
        const answered = {
          from: iso(fromMs),
          to: iso(toMs),
          step,
          time_zone: timeZone,
          complete_through: completeThroughMs === undefined ? null : iso(completeThroughMs),
          silent: silent.map(({ journal, sinceMs }) => ({ ...(reach.isOwn ? {} : { journal }), since: iso(sinceMs) })),
          cut_off: rows.length >= answerRowsMax,
          rows,
        }
        return reply
          .type('application/json; charset=utf-8')
          .send(form.sumsAreText ? JSON.stringify(answered) : jsonWithNumbers(answered, sums))
      } catch (error) {
        request.log.error({ err: error }, 'a question could not be answered')
        return answerProblem(reply, unavailable(noAnswer))
      }
    },
  )
}

/** `GET /v1/usage`: who used what and when. `GET /v1/outcomes`: how upstreams answered, and how fast. */
export function registerUsage(app: FastifyInstance, ports: Ports): void {
  register(app, ports, {
    path: '/v1/usage',
    dimensions: usageDimensions,
    summary: 'Usage, summed',
    description: 'Usage',
    row: usageRow,
    optional: Object.keys(usageNames),
    unavailable: usageUnavailable,
    rows: 'decisions',
    parse: parseUsageQuery,
    ask: ports.askUsage,
  })
  register(app, ports, {
    path: '/v1/outcomes',
    dimensions: outcomeDimensions,
    summary: 'Statuses, latencies and bytes of the answers of upstreams',
    description: 'Outcomes',
    row: outcomeRow,
    optional: Object.keys(outcomeNames),
    unavailable: outcomesUnavailable,
    rows: 'outcomes',
    parse: parseOutcomeQuery,
    ask: ports.askOutcomes,
  })
}
