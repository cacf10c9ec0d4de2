import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describeAlert } from '@weir/contracts/describe-alert.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { fillTemplate } from '@weir/policy/template.ts'
import { templateValues } from '../alert-templates.ts'
import { type Channel, hookUrl, post, unsent } from './channel.ts'

/** Slack's markup: with these three escaped, no name of a subject becomes a link or a mention. */
const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escapeText = (text: string) => text.replace(/[&<>]/g, (character) => escapes[character] ?? character)

/** Slack accepts headers of 150 characters, and sections of 3,000. */
const headerMax = 150
const sectionMax = 3_000

/** Builds the body of a message, in the words of its template or in Weir's own. */
function bodyOf(alert: AlertV1, template: string | undefined): string {
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

/** A channel of Slack, or of another program that accepts Slack's incoming webhooks. */
export const slack: Channel<EndpointOf<'slack'>> = {
  verdicts: { 410: 'gone' },
  addressOf: ({ urlEnv }) => urlEnv,
  findProblem: (endpoint, environment) => hookUrl.findProblem(endpoint, endpoint.urlEnv, environment),
  async send(endpoint, alert, tools) {
    const { urlEnv, allowPrivate } = endpoint
    const url = hookUrl.read(tools.environment, urlEnv)
    if (url === undefined) return unsent(`${urlEnv} holds no URL`)
    const template = tools.templates.find(endpoint, alert.type, 'slack')?.text
    return post(tools, { url, allowPrivate, body: bodyOf(alert, template) })
  },
}
