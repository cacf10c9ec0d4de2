import { answerRowsMax } from '@weir/clickhouse/question-sql.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { ParsedQuestion, Question } from '@weir/core/usage/question.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerProblem, badRequest } from './problems.ts'
import { answer, object, text, textOrNull } from './schemas.ts'

const parameter = (description: string) => ({ description })

/** The parameters of a question. What is wrong with one is said by its parser, all at once. */
export const questionQuery = {
  type: 'object',
  properties: {
    subject: parameter('whose; everybody together if absent'),
    from: parameter('RFC 3339; 24 hours before `to` if absent'),
    to: parameter('RFC 3339; now if absent'),
    by: parameter('columns, separated by commas'),
    step: parameter('hour, day, …'),
    time_zone: parameter('IANA'),
  },
} as const

/** The answer to a question whose rows look like this. */
export const questionAnswer = (description: string, row: object) =>
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
        items: object({ journal: text('process start'), since: text('its last mark') }),
      },
      cut_off: { type: 'boolean', description: 'whether there are more rows than are answered' },
      rows: { type: 'array', items: row },
    }),
  )

/** The questions of one kind. */
export interface Questions<Dimension extends string> {
  /** The problem's type when ClickHouse does not answer. */
  readonly unavailable: string
  readonly askCompleteness: () => Promise<Completeness>
  readonly askRows: (question: Question<Dimension>) => Promise<readonly object[]>
}

const iso = (ms: number) => new Date(ms).toISOString()

/** Answers a question, or says what is wrong with it, or that ClickHouse is away. */
export async function answerQuestion<Dimension extends string>(
  { unavailable, askCompleteness, askRows }: Questions<Dimension>,
  parsed: ParsedQuestion<Dimension>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  if (parsed.kind === 'problems') return answerProblem(reply, badRequest(parsed.problems.join('; ')))
  const { fromMs, toMs, step, timeZone } = parsed.question
  try {
    // First: what comes in between the two is then more than was claimed, and never less.
    const { completeThroughMs, silent } = await askCompleteness()
    const rows = await askRows(parsed.question)
    return {
      ...{ from: iso(fromMs), to: iso(toMs), step, time_zone: timeZone },
      complete_through: completeThroughMs === undefined ? null : iso(completeThroughMs),
      silent: silent.map(({ journal, sinceMs }) => ({ journal, since: iso(sinceMs) })),
      cut_off: rows.length >= answerRowsMax,
      rows,
    }
  } catch (error) {
    request.log.error({ err: error }, 'a question could not be answered')
    const detail = 'ClickHouse did not answer. Nothing is lost meanwhile; ask again later.'
    return answerProblem(reply, { type: unavailable, title: 'Unavailable', status: 503, detail })
  }
}
