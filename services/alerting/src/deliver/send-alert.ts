import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describeAlert } from '@weir/contracts/describe-alert.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { EmailEndpoint, SlackEndpoint, WebhookEndpoint } from '@weir/policy/policy.ts'
import { fillTemplate } from '@weir/policy/template.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { Webhook } from 'standardwebhooks'
import { type AlertTemplates, templateValues } from './alert-templates.ts'
import type { AttemptResult, SendAlert } from './deliver-alert.ts'
import type { EndpointSecrets } from './endpoint-secrets.ts'
import { parseRetryAfter } from './retry-schedule.ts'

/** Standard Webhooks gives receivers 15 to 30 s. */
const attemptMs = 15_000
/** Bytes of an answer that are read, for the rows of deliveries. */
const answerBytesMax = 1_024

/** Slack's markup: with these three escaped, no name of a subject becomes a link or a mention. */
const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escapeText = (text: string) => text.replace(/[&<>]/g, (character) => escapes[character] ?? character)

/** Slack accepts headers of 150 characters. */
const headerMax = 150

function errorOf(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return `answered ${status}, and redirects are not followed`
  return `answered ${status}`
}

/** Returns why a request failed. The code of undici's errors says most; those of a refused address have a sentence. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no whole answer within ${attemptMs / 1_000} s`
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return code === '' || error.message.includes(code) ? error.message : `${code}: ${error.message}`
}

/** Slack accepts sections of as many characters. */
const sectionMax = 3_000

/** Builds the body of a message to Slack, in the words of its template or in Weir's own. */
function slackBody(alert: AlertV1, template: string | undefined): string {
  const { title, lines } = describeAlert(alert)
  if (template !== undefined) {
    const words = fillTemplate(template, templateValues(alert, escapeText)).slice(0, sectionMax)
    const section = { type: 'section', text: { type: 'mrkdwn', text: words, verbatim: true } }
    return JSON.stringify({ text: escapeText(title), blocks: [section] })
  }
  return JSON.stringify({
    // Shown where blocks are not, in notifications.
    text: escapeText(title),
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: title.slice(0, headerMax), emoji: false } },
      { type: 'section', text: { type: 'mrkdwn', text: lines.map(escapeText).join('\n'), verbatim: true } },
      { type: 'context', elements: [{ type: 'plain_text', text: `${alert.type} ${alert.id}`, emoji: false }] },
    ],
  })
}

/** Builds the body of a webhook: type, time, subject and data. The alert's id is in the header `webhook-id`. */
const webhookBody = ({ type, subject, time, data }: AlertV1) =>
  JSON.stringify({ type, timestamp: time, data: { subject, ...data } })

/** Signs by Standard Webhooks 1.0. During a rotation both secrets sign, so that a receiver may have either. */
function signatureHeaders(secrets: readonly string[], id: string, at: Date, body: string) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
  }
}

/** Returns the function that makes one attempt, whatever the endpoint's type. Addresses are checked when connecting. */
export function createAlertSender(options: {
  readonly outgoing: Outgoing
  readonly secrets: Pick<EndpointSecrets, 'signingSecrets' | 'slackUrl'>
  readonly clock: Clock
  readonly sendEmail: SendAlert<EmailEndpoint>
  readonly templates: Pick<AlertTemplates, 'find'>
}): SendAlert {
  const { outgoing, secrets, clock, sendEmail, templates } = options

  /** Posts JSON: 2xx is success, redirects are not followed, 410 is for good. */
  const post = async (url: string, allowPrivate: boolean, body: string, headers = {}): Promise<AttemptResult> => {
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
      const { status } = answer
      const error = errorOf(status)
      return {
        status,
        ...(error === undefined ? {} : { error }),
        isGone: status === 410,
        retryAfterMs: parseRetryAfter(answer.headers['retry-after'], clock.nowMs()),
        // A person who may read alerts must not read answers of the private network by them.
        answer: allowPrivate ? '' : answer.body.toString('utf8'),
      }
    } catch (error) {
      return { status: 0, error: reasonOf(error), answer: '' }
    }
  }

  const sendWebhook: SendAlert<WebhookEndpoint> = async (endpoint, alert) => {
    const own = secrets.signingSecrets(endpoint)
    if (own.length === 0) return { status: 0, error: `${endpoint.secretEnv} holds no secret`, answer: '' }
    const body = webhookBody(alert)
    const signed = signatureHeaders(own, alert.id, new Date(clock.nowMs()), body)
    const traced = alert.traceparent === undefined ? {} : { traceparent: alert.traceparent }
    return post(endpoint.url, endpoint.allowPrivate, body, { ...signed, ...traced })
  }

  const sendSlack: SendAlert<SlackEndpoint> = async (endpoint, alert) => {
    const url = secrets.slackUrl(endpoint)
    if (url === undefined) return { status: 0, error: `${endpoint.urlEnv} holds no URL`, answer: '' }
    return post(url, endpoint.allowPrivate, slackBody(alert, templates.find(endpoint, alert.type, 'slack')?.text))
  }

  return async function sendAlert(endpoint, alert) {
    if (endpoint.type === 'webhook') return sendWebhook(endpoint, alert)
    return endpoint.type === 'slack' ? sendSlack(endpoint, alert) : sendEmail(endpoint, alert)
  }
}
