import type { Endpoint } from '@weir/core/policy/policy.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { Webhook } from 'standardwebhooks'

/** Standard Webhooks gives receivers 15 to 30 s. */
const attemptMs = 15_000
/** What of an answer is read; it is only drained. */
const answerBytesMax = 16_384

/** One message to one endpoint; `body` is what is signed, byte for byte. */
export interface WebhookMessage {
  readonly id: string
  readonly body: string
}

export interface WebhookSender {
  /** One attempt. Resolves with the status of a 2xx answer; rejects with what went wrong otherwise. */
  send(endpoint: Endpoint, secret: string, message: WebhookMessage): Promise<number>
  close(): Promise<void>
}

/** Sends signed webhooks by Standard Webhooks 1.0: no redirects, 2xx is success, addresses are checked when connecting. */
export function createWebhookSender(): WebhookSender {
  const outgoing = createOutgoing()
  return {
    async send(endpoint, secret, { id, body }) {
      const at = new Date()
      const { status } = await outgoing.send({
        method: 'POST',
        url: endpoint.url,
        allowPrivate: endpoint.allowPrivate,
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
          'webhook-signature': new Webhook(secret).sign(id, at, body),
        },
        body,
        deadlineMs: attemptMs,
        answerBytesMax,
      })
      if (status >= 200 && status < 300) return status
      throw new Error(`the endpoint answered ${status}`)
    },
    close: () => outgoing.close(),
  }
}
