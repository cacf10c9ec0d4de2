import type { Endpoint } from '@weir/core/policy/policy.ts'
import { Webhook } from 'standardwebhooks'
import { Agent, request } from 'undici'
import { isPublicAddress, publicLookup } from './public-address.ts'

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

/** The literal address of a URL's host, if it is one: those never pass through a lookup. */
function literalAddress(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return /^[\d.]+$|:/.test(host) ? host : undefined
}

/** Sends signed webhooks by Standard Webhooks 1.0: no redirects, 2xx is success, addresses are checked when connecting. */
export function createWebhookSender(): WebhookSender {
  const toPublic = new Agent({ connect: { lookup: publicLookup }, connectTimeout: attemptMs })
  const toAnywhere = new Agent({ connectTimeout: attemptMs })
  return {
    async send(endpoint, secret, { id, body }) {
      const url = new URL(endpoint.url)
      const literal = literalAddress(url)
      if (!endpoint.allowPrivate && literal !== undefined && !isPublicAddress(literal)) {
        throw new Error(`${literal} is not a public address, and the endpoint has no allowPrivate`)
      }
      const at = new Date()
      const answer = await request(url, {
        method: 'POST',
        dispatcher: endpoint.allowPrivate ? toAnywhere : toPublic,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'weir',
          'webhook-id': id,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
          'webhook-signature': new Webhook(secret).sign(id, at, body),
        },
        body,
        signal: AbortSignal.timeout(attemptMs),
      })
      await answer.body.dump({ limit: answerBytesMax })
      if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.statusCode
      throw new Error(`the endpoint answered ${answer.statusCode}`)
    },
    async close() {
      await Promise.all([toPublic.close(), toAnywhere.close()])
    },
  }
}
