import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describeAlert } from '@weir/contracts/describe-alert.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { alertPage, type Channel, type ChannelTools, hookUrl, post, unsent } from './channel.ts'

/**
 * Bytes of text in a card. Teams shows messages of 28 KB; the workflow fails on a longer one after it has answered 202.
 */
const textBytesMax = 16_000

/** A line of a card. Text runs have no markup: no name of a subject becomes a link or a mention. */
const line = (text: string, style: object = {}) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', text, ...style }],
})

/** Returns as many lines as a card holds, and how many are left out. */
function fitting(lines: readonly string[]): readonly string[] {
  let bytes = 0
  const beyond = lines.findIndex((text) => {
    bytes += Buffer.byteLength(JSON.stringify(line(text)))
    return bytes > textBytesMax
  })
  return beyond === -1 ? lines : [...lines.slice(0, beyond), `and ${lines.length - beyond} more lines`]
}

function bodyOf(alert: AlertV1, tools: ChannelTools): string {
  const { title, lines } = describeAlert(alert)
  const page = alertPage(alert, tools)
  const content = {
    type: 'AdaptiveCard',
    version: '1.4',
    body: [
      line(title, { weight: 'Bolder', size: 'Medium' }),
      ...fitting(lines).map((text) => line(text)),
      line(`${alert.type} ${alert.id}`, { isSubtle: true, size: 'Small' }),
    ],
    ...(page === undefined ? {} : { actions: [{ type: 'Action.OpenUrl', title: 'Open in Weir', url: page }] }),
  }
  return JSON.stringify({
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  })
}

/** A chat or a channel of Microsoft Teams, by a workflow that begins with a webhook request. */
export const teams: Channel<EndpointOf<'teams'>> = {
  verdicts: { 410: 'gone' },
  addressOf: ({ urlEnv }) => urlEnv,
  findProblem: (endpoint, environment) => hookUrl.findProblem(endpoint, endpoint.urlEnv, environment),
  async send({ urlEnv, allowPrivate }, alert, tools) {
    const url = hookUrl.read(tools.environment, urlEnv)
    if (url === undefined) return unsent(`${urlEnv} holds no URL`)
    return post(tools, { url, allowPrivate, body: bodyOf(alert, tools) })
  },
}
