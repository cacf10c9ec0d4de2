import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Target } from '@weir/policy/policy.ts'
import { readNamedSecret } from '@weir/runtime/named-secret.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import type { SendMailOptions } from 'nodemailer'
import type { AlertTemplates } from '../alert-templates.ts'
import { parseRetryAfter } from '../retry-schedule.ts'

/** The result of one attempt. */
export interface AttemptResult {
  /** The status of the HTTP or SMTP answer; 0 for none. */
  readonly status: number
  /** Why the attempt failed; undefined if the endpoint accepted the alert. */
  readonly error?: string
  /** The pause that the endpoint asks for. */
  readonly retryAfterMs?: number | undefined
  /** Why there is no further attempt: the endpoint is gone for good, or this alert will never be accepted. */
  readonly verdict?: 'gone' | 'final' | undefined
  /** The beginning of the answer's body. */
  readonly answer: string
}

/** What channels send with. */
export interface ChannelTools {
  /** The variables that hold the secrets of endpoints, each in NAME or in the file that NAME_FILE names. */
  readonly environment: Environment
  readonly outgoing: Outgoing
  readonly mailer: { send(mail: SendMailOptions): Promise<AttemptResult> }
  readonly templates: Pick<AlertTemplates, 'find'>
  /** The keys that sign links of mail, as WEIR_UNSUBSCRIBE_KEY has them; empty for none. */
  readonly unsubscribeKeys: () => string
  /** The address of the console for people; undefined if it is not known. */
  readonly consoleUrl: URL | undefined
  readonly clock: Clock
}

/** A way to send alerts: everything that a type of endpoint needs besides its keys in the policy. */
export interface Channel<E extends Target = Target> {
  /** Answers after which there is no further attempt; after any other failure there is one. */
  readonly verdicts: Readonly<Record<number, 'gone' | 'final'>>
  /** Returns what a disabled endpoint is known by, so that another address enables it; it holds no secret. */
  addressOf(endpoint: E): string
  /** Returns why nothing can be sent to an endpoint, and what to do; undefined if alerts can be sent. */
  findProblem(endpoint: E, environment: Environment): string | undefined
  /** Makes one attempt. Never rejects, and ends within its own deadline. */
  send(endpoint: E, alert: AlertV1, tools: ChannelTools): Promise<AttemptResult>
}

/** A secret that endpoints name by a variable, read for each delivery. `wanted` says what the variable must hold. */
export const secretOf = <T>(wanted: string, parse: (text: string) => T | undefined) => ({
  /** Returns undefined while the variable is missing or wrong. */
  read: (environment: Environment, variable: string) => parse(readNamedSecret(environment, variable).text),
  findProblem({ name }: Target, variable: string, environment: Environment): string | undefined {
    const { text, where, remedy } = readNamedSecret(environment, variable)
    return parse(text) === undefined ? `${where} (endpoint ${name}) must contain ${wanted}; ${remedy}` : undefined
  },
})

/** The URL of an incoming webhook, which is a secret. */
export const hookUrl = secretOf('the URL of an incoming webhook', (text) =>
  /^https?:\/\/[^/@?#\s]+\S*$/.test(text) && URL.canParse(text) ? text : undefined,
)

/** Returns the page of an alert in the console; undefined if the console's address is not known. */
export const alertPage = ({ id }: AlertV1, { consoleUrl }: ChannelTools): string | undefined =>
  consoleUrl && new URL(`/alerts/${id}`, consoleUrl).href

/** The result of an attempt that was not made. */
export const unsent = (error: string): AttemptResult => ({ status: 0, error, answer: '' })

/** Standard Webhooks gives receivers 15 to 30 s. */
const attemptMs = 15_000
/** Bytes of an answer that are read, for the rows of deliveries. */
const answerBytesMax = 1_024

function errorOf(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return `answered ${status}; redirects are not followed`
  return `answered ${status}`
}

/** Returns why a request failed. The code of undici's errors says most; those of a refused address have a sentence. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no complete response after ${attemptMs / 1_000} s`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return code === '' || error.message.includes(code) ? error.message : `${code}: ${error.message}`
}

/** Posts JSON: 2xx is success, and redirects are not followed. Addresses are checked when connecting. */
export async function post(
  { outgoing, clock }: ChannelTools,
  request: { readonly url: string; readonly allowPrivate: boolean; readonly body: string; readonly headers?: object },
): Promise<AttemptResult> {
  const { url, allowPrivate, body, headers } = request
  try {
    const answer = await outgoing.send({
      method: 'POST',
      url,
      allowPrivate,
      body,
      deadlineMs: attemptMs,
      answerBytesMax,
      headers: { 'content-type': 'application/json', ...headers },
    })
    const error = errorOf(answer.status)
    return {
      status: answer.status,
      ...(error === undefined ? {} : { error }),
      retryAfterMs: parseRetryAfter(answer.headers['retry-after'], clock.nowMs()),
      // A person who may read alerts must not read answers of the private network by them.
      answer: allowPrivate ? '' : answer.body.toString('utf8'),
    }
  } catch (error) {
    return unsent(reasonOf(error))
  }
}
