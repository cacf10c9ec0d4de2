import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { endpointSecrets } from '@weir/policy/endpoint-secret.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { signingKeysOf, unsubscribeKeyVariable } from '@weir/runtime/signing-keys.ts'
import { Webhook } from 'standardwebhooks'
import { type Channel, post, secretOf, unsent } from './channel.ts'

/** The current and the previous secret; more would only be more to leak. */
const secretsMax = 2
/** Standard Webhooks: 24 to 64 bytes. */
const secretForm = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/

/** One secret, or during a rotation the new and the old with a space between them: the current one first. */
const signingSecrets = secretOf(
  'whsec_ and 24 to 64 random bytes in base64, or two of them while one replaces the other',
  (text) => {
    const secrets = text.split(' ').filter((part) => part !== '')
    const isRight = secrets.length > 0 && secrets.length <= secretsMax && secrets.every((one) => secretForm.test(one))
    return isRight ? secrets : undefined
  },
)

/** Builds the body: type, time, subject and data. The alert's id is in the header `webhook-id`. */
const bodyOf = ({ type, subject, time, data }: AlertV1) =>
  JSON.stringify({ type, timestamp: time, data: { subject, ...data } })

/** Signs by Standard Webhooks 1.0. During a rotation both secrets sign, so that a receiver may have either. */
function signatureHeaders(secrets: readonly string[], id: string, at: Date, body: string) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
  }
}

/** The keys that the secret of an endpoint without `secretEnv` is derived from. */
const derivedFrom = unsubscribeKeyVariable.name

/** Signed webhooks, as Standard Webhooks 1.0 has them. */
export const webhook: Channel<EndpointOf<'webhook'>> = {
  verdicts: { 410: 'gone' },
  addressOf: ({ url }) => url,
  findProblem(endpoint, environment) {
    const { name, secretEnv } = endpoint
    if (secretEnv !== undefined) return signingSecrets.findProblem(endpoint, secretEnv, environment)
    const hasKey = environment[derivedFrom] || environment[`${derivedFrom}_FILE`]
    return hasKey ? undefined : `${derivedFrom} (endpoint ${name}) must be set, or name a variable in secretEnv`
  },
  async send({ name, url, allowPrivate, secretEnv }, alert, tools) {
    const secrets =
      secretEnv === undefined
        ? endpointSecrets(signingKeysOf(tools.unsubscribeKeys()), name)
        : (signingSecrets.read(tools.environment, secretEnv) ?? [])
    if (secrets.length === 0) return unsent(`${secretEnv ?? derivedFrom} holds no secret`)
    const body = bodyOf(alert)
    const signed = signatureHeaders(secrets, alert.id, new Date(tools.clock.nowMs()), body)
    const traced = alert.traceparent === undefined ? {} : { traceparent: alert.traceparent }
    return post(tools, { url, allowPrivate, body, headers: { ...signed, ...traced } })
  },
}
