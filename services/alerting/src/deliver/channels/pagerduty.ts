import { describeAlert } from '@weir/contracts/describe-alert.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { alertPage, type Channel, post, secretOf, unsent } from './channel.ts'

const integrationKey = secretOf('the integration key of 32 letters and digits', (text) =>
  /^[A-Za-z0-9]{32}$/.test(text) ? text : undefined,
)

/** PagerDuty accepts summaries of as many characters. */
const summaryMax = 1_024

/** A service of PagerDuty, by its Events API v2. An alert that is sent again joins the incident that it opened, and the
 * alert that resolves it resolves the incident. */
export const pagerduty: Channel<EndpointOf<'pagerduty'>> = {
  // The event is malformed, and will be the next time.
  verdicts: { 400: 'final' },
  addressOf: ({ url, secretEnv }) => `${url} ${secretEnv}`,
  findProblem: (endpoint, environment) => integrationKey.findProblem(endpoint, endpoint.secretEnv, environment),
  async send({ url, secretEnv, severity }, alert, tools) {
    const key = integrationKey.read(tools.environment, secretEnv)
    if (key === undefined) return unsent(`${secretEnv} does not contain an integration key`)
    const { id, type, subject, time, data } = alert
    const send = (event: object) => post(tools, { url, allowPrivate: false, body: JSON.stringify(event) })
    if (alert.type === 'weir.quota.resolved') {
      return send({ routing_key: key, event_action: 'resolve', dedup_key: alert.data.resolves })
    }
    const { title, lines } = describeAlert(alert)
    return send({
      routing_key: key,
      event_action: 'trigger',
      dedup_key: id,
      client: 'Weir',
      client_url: alertPage(alert, tools),
      payload: {
        summary: title.slice(0, summaryMax),
        source: subject,
        severity,
        timestamp: time,
        component: 'limit' in data ? data.limit : undefined,
        class: type,
        custom_details: { ...data, description: lines.join('\n') },
      },
    })
  },
}
