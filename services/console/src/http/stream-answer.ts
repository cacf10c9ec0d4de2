import { finished, type Readable } from 'node:stream'
import { QuestionBoundMet, streamMsMax, streamRowsMax } from '@weir/clickhouse/usage-stream.ts'
import type { StreamFormat } from '@weir/core/usage/answer-form.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerProblem, tooManyStreams } from './problems.ts'
import type { StreamPlaces } from './stream-places.ts'

/** The media type of each format that is streamed. */
export const streamTypes: Readonly<Record<StreamFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  jsonl: 'application/x-ndjson; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
}

const questionTooLarge = problem(
  'question-too-large',
  'The question is too large',
  422,
  `The answer has more than ${streamRowsMax} rows, or reads too much. Ask for a shorter span, a longer step or fewer columns in \`by\`.`,
)
const questionTimedOut = problem(
  'question-timed-out',
  'The question took too long',
  504,
  `ClickHouse did not answer within ${streamMsMax / 1_000} seconds. Ask for a shorter span, or a longer step.`,
)

function failureOf(error: unknown, deadline: AbortSignal, unavailable: Problem): Problem {
  const met = error instanceof QuestionBoundMet ? error.bound : undefined
  const bound = deadline.aborted ? 'timed-out' : met
  if (bound === undefined) return unavailable
  return bound === 'too-large' ? questionTooLarge : questionTimedOut
}

/** An answer that is streamed. */
export interface StreamedAnswer {
  readonly format: StreamFormat
  /** The file's name without its ending, where a browser stores it. */
  readonly name: string
  readonly askCompleteness: () => Promise<Completeness>
  /** Resolves once the answer begins. */
  readonly open: (signal: AbortSignal) => Promise<Readable>
  readonly unavailable: Problem
}

/**
 * Answers with a stream that goes as fast as its reader. Where it ends before it is whole the connection is cut; a
 * reader that leaves, and one that takes too long, ends its query in ClickHouse.
 */
export async function answerStream(
  request: FastifyRequest,
  reply: FastifyReply,
  places: StreamPlaces,
  { format, name, askCompleteness, open, unavailable }: StreamedAnswer,
): Promise<FastifyReply> {
  const place = places.take(request.by)
  if ('refusal' in place) return answerProblem(reply, tooManyStreams(place.refusal))
  const left = new AbortController()
  const leave = () => {
    place.leave()
    left.abort()
  }
  reply.raw.once('close', leave)
  if (reply.raw.destroyed) leave() // Its reader left while the credential was looked at.
  const deadline = AbortSignal.timeout(streamMsMax)
  try {
    // First: what comes in between the two is then more than was claimed, and never less.
    const { completeThroughMs, silent } = await askCompleteness()
    const signal = AbortSignal.any([left.signal, deadline])
    const stream = request.method === 'HEAD' ? undefined : await open(signal)
    if (stream !== undefined) {
      finished(stream, (error) => {
        if (error && !left.signal.aborted) request.log.error({ err: error }, 'a stream was cut off in its middle')
      })
    }
    if (completeThroughMs !== undefined) {
      reply.header('weir-complete-through', new Date(completeThroughMs).toISOString())
    }
    return reply
      .type(streamTypes[format])
      .header('content-disposition', `attachment; filename="${name}.${format}"`)
      .header('cache-control', 'no-store')
      .header('weir-silent', silent.length)
      .send(stream)
  } catch (error) {
    place.leave()
    if (left.signal.aborted) return reply
    request.log.error({ err: error }, 'a question could not be answered')
    return answerProblem(reply, failureOf(error, deadline, unavailable))
  }
}
