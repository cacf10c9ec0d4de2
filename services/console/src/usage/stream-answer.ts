import { finished, type Readable } from 'node:stream'
import { type StreamFormat, streamTypes } from '@weir/api/query/answer-form.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerProblem, tooManyStreams } from '../http/problems.ts'
import { questionFailure } from '../http/question-failure.ts'
import type { Semaphore } from '../http/semaphore.ts'
import { streamMsMax } from './usage-stream.ts'

/** An answer that is streamed. */
export interface StreamedAnswer {
  readonly format: StreamFormat
  /** The file's name without its ending, where a browser stores it. */
  readonly name: string
  readonly askCompleteness: () => Promise<Completeness>
  readonly readGaps: () => Promise<readonly unknown[]>
  /** Resolves once the answer begins. */
  readonly open: (signal: AbortSignal, completeThroughMs: number | undefined) => Promise<Readable>
  readonly unavailable: Problem
  /** How long it may take altogether. */
  readonly msMax?: number
}

/**
 * Answers with a stream that goes as fast as its reader. Where it ends before it is whole the connection is cut; a
 * reader that leaves, and one that takes too long, ends its query in ClickHouse.
 */
export async function answerStream(
  request: FastifyRequest,
  reply: FastifyReply,
  semaphore: Semaphore,
  { format, name, askCompleteness, readGaps, open, unavailable, msMax = streamMsMax }: StreamedAnswer,
): Promise<FastifyReply> {
  const permit = semaphore.take(request.by)
  if ('refusal' in permit) return answerProblem(reply, tooManyStreams(permit.refusal))
  const left = new AbortController()
  const leave = () => {
    permit.leave()
    left.abort()
  }
  reply.raw.once('close', leave)
  if (reply.raw.destroyed) leave() // Its reader left while the credential was looked at.
  const deadline = AbortSignal.timeout(msMax)
  try {
    // First: what comes in between the two is then more than was claimed, and never less.
    const [{ completeThroughMs, silent }, gaps] = await Promise.all([askCompleteness(), readGaps()])
    const signal = AbortSignal.any([left.signal, deadline])
    const stream = request.method === 'HEAD' ? undefined : await open(signal, completeThroughMs)
    if (stream !== undefined) {
      finished(stream, (error) => {
        if (error && !left.signal.aborted) request.log.error({ err: error }, 'stream broke off')
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
      .header('weir-gaps', gaps.length)
      .send(stream)
  } catch (error) {
    permit.leave()
    if (left.signal.aborted) return reply
    request.log.error({ err: error }, 'query failed')
    return answerProblem(reply, questionFailure(error, { msMax, isLate: deadline.aborted, unavailable }))
  }
}
