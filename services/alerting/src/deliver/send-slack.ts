import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { SlackEndpoint } from '@weir/policy/policy.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { describeAlert } from './describe-alert.ts'
import type { EndpointSecrets } from './endpoint-secrets.ts'
import { attemptByHttp } from './http-attempt.ts'
import type { SendAlert } from './ports.ts'

/** What Slack takes for markup: with these three escaped, no name of a subject becomes a link or a mention. */
const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escapeText = (text: string) => text.replace(/[&<>]/g, (character) => escapes[character] ?? character)

/** A header takes 150 characters, a section 3,000; a subject has at most 128. */
const headerMax = 150

function messageOf(alert: AlertV1): string {
  const { title, lines } = describeAlert(alert)
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

/** Posts to an incoming webhook of Slack. */
export function createSlackSender(options: {
  readonly outgoing: Outgoing
  readonly secrets: EndpointSecrets
  readonly clock: Clock
}): SendAlert<SlackEndpoint> {
  return async function sendSlack(endpoint, alert) {
    const url = options.secrets.slackUrl(endpoint)
    if (url === undefined) return { status: 0, error: `${endpoint.urlEnv} holds no URL`, answer: '' }
    const { allowPrivate } = endpoint
    return attemptByHttp({ url, allowPrivate, headers: {}, body: messageOf(alert) }, options)
  }
}
