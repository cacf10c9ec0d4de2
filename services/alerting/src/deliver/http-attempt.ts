import type { Clock } from '@weir/core/clock.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { AttemptResult } from './ports.ts'
import { parseRetryAfter } from './retry-schedule.ts'

/** Standard Webhooks gives receivers 15 to 30 s. */
const attemptMs = 15_000
/** What of an answer is read, for the log of deliveries. */
const answerBytesMax = 1_024

function errorOf(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return `answered ${status}, and redirects are not followed`
  return `answered ${status}`
}

/** Of undici's errors the code says most; those of a refused address say it in words. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no whole answer within ${attemptMs / 1_000} s`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return code === '' || error.message.includes(code) ? error.message : `${code}: ${error.message}`
}

export interface HttpAttempt {
  readonly url: string
  readonly allowPrivate: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Posts JSON: 2xx is success, redirects are not followed, 410 is for good. Never rejects. */
export async function attemptByHttp(
  { url, allowPrivate, headers, body: content }: HttpAttempt,
  { outgoing, clock }: { readonly outgoing: Outgoing; readonly clock: Clock },
): Promise<AttemptResult> {
  try {
    const answer = await outgoing.send({
      method: 'POST',
      ...{ url, allowPrivate },
      headers: { 'content-type': 'application/json', ...headers },
      body: content,
      deadlineMs: attemptMs,
      answerBytesMax,
    })
    const { status } = answer
    const error = errorOf(status)
    return {
      status,
      ...(error === undefined ? {} : { error }),
      isGone: status === 410,
      retryAfterMs: parseRetryAfter(answer.headers['retry-after'], clock.nowMs()),
      // Who may read alerts may not read within the network by them.
      answer: allowPrivate ? '' : answer.body.toString('utf8'),
    }
  } catch (error) {
    return { status: 0, error: reasonOf(error), answer: '' }
  }
}
