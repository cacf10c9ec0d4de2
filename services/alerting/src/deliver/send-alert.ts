import type { EmailEndpoint, SlackEndpoint, WebhookEndpoint } from '@weir/policy/policy.ts'
import type { SendAlert } from './ports.ts'

/** One attempt, whatever the endpoint's type. */
export function createAlertSender(senders: {
  readonly webhook: SendAlert<WebhookEndpoint>
  readonly slack: SendAlert<SlackEndpoint>
  readonly email: SendAlert<EmailEndpoint>
}): SendAlert {
  return async function sendAlert(endpoint, alert) {
    switch (endpoint.type) {
      case 'webhook':
        return senders.webhook(endpoint, alert)
      case 'slack':
        return senders.slack(endpoint, alert)
      case 'email':
        return senders.email(endpoint, alert)
    }
  }
}
