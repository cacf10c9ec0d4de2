import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { WebhookEndpoint } from '@weir/policy/policy.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { Webhook } from 'standardwebhooks'
import type { EndpointSecrets } from './endpoint-secrets.ts'
import { attemptByHttp } from './http-attempt.ts'
import type { SendAlert } from './ports.ts'

/** The body of the webhook: what happened, when, to whom. The alert's id travels as `webhook-id`. */
function webhookBody({ type, subject, time, data }: AlertV1): string {
  return JSON.stringify({ type, timestamp: time, data: { subject, ...data } })
}

/** During a rotation both secrets sign, so that a receiver may have either. */
function signatureOf(secrets: readonly string[], id: string, at: Date, body: string): string {
  return secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' ')
}

/** Sends signed webhooks by Standard Webhooks 1.0; addresses are checked when connecting. */
export function createWebhookSender(options: {
  readonly outgoing: Outgoing
  readonly secrets: EndpointSecrets
  readonly clock: Clock
}): SendAlert<WebhookEndpoint> {
  const { secrets, clock } = options
  return async function sendWebhook(endpoint, alert) {
    const own = secrets.signingSecrets(endpoint)
    if (own.length === 0) return { status: 0, error: `${endpoint.secretEnv} holds no secret`, answer: '' }
    const at = new Date(clock.nowMs())
    const body = webhookBody(alert)
    const headers = {
      'webhook-id': alert.id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': signatureOf(own, alert.id, at, body),
    }
    const { url, allowPrivate } = endpoint
    return attemptByHttp({ url, allowPrivate, headers, body }, options)
  }
}
