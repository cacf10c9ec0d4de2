import { namePattern, nameRule, parseHttpUrl, urlSchema, variablePattern } from '../policy-values.ts'
import * as t from './value-types.ts'

/** One message to all of them; a mailing list is one address. */
const recipientsMax = 20
/** An address of mail. */
export const addressForm = /^[^\s@<>"(),:;\\[\]]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/

const variableRule = 'the name of an environment variable in capitals, such as OPS_SECRET (never the secret itself)'
/** The name of a variable that holds a secret. */
export const variable = t.secretText(variableRule, (name) => (variablePattern.test(name) ? name : undefined), {
  pattern: variablePattern.source,
})
const url = t.secretText(
  'an http or https URL without credentials and fragment',
  (one) => parseHttpUrl(one)?.href,
  urlSchema,
)
/** The service regions of PagerDuty: no other server gets an integration key. */
const eventsUrls: readonly string[] = [
  'https://events.pagerduty.com/v2/enqueue',
  'https://events.eu.pagerduty.com/v2/enqueue',
]
const eventsUrl = t.secretText(
  `one of ${eventsUrls.join(', ')}`,
  (one) => (eventsUrls.includes(one) ? one : undefined),
  { enum: eventsUrls },
)
const allowPrivate = t.withDefault('Allows a loopback or private address.', t.boolean, false)
const templates = t.optional(
  "Folder of templates. Default: Weir's own templates.",
  t.matching(`the name of a folder: ${nameRule}`, namePattern),
)

/** A list of addresses of mail. */
export const addresses = (max: number, rules: { readonly nameOf?: (address: string) => string } = {}) =>
  t.list(
    'a list of addresses such as [ops@example.com]',
    t.matching('an address such as ops@example.com', addressForm),
    { min: 1, max, ...rules, wrongCount: (count) => `must have 1 to ${max} addresses, but has ${count}` },
  )

/**
 * The keys that endpoints of each type have besides `type`, `only` and `paused`. Every type but `subject`, which is
 * sent to the contact of an alert's subject, is a channel of alerting. A key that names a variable ends with `Env`.
 */
export const endpointKeys = {
  webhook: {
    url: t.required('URL that alerts are sent to.', url),
    secretEnv: t.optional('Environment variable with the whsec_… secret. Default: Weir generates a secret.', variable),
    allowPrivate,
  },
  slack: {
    urlEnv: t.required('Environment variable with the URL of the incoming webhook.', variable),
    allowPrivate,
    templates,
  },
  teams: { urlEnv: t.required("Environment variable with the URL of the workflow's webhook.", variable), allowPrivate },
  pagerduty: {
    secretEnv: t.required('Environment variable with the integration key.', variable),
    url: t.withDefault("URL of the events API; the second is PagerDuty's EU region.", eventsUrl, eventsUrls[0] ?? ''),
    severity: t.withDefault('Severity of its events.', t.oneOf(['critical', 'error', 'warning', 'info']), 'warning'),
  },
  email: { to: t.required('Recipients of the mail.', addresses(recipientsMax)), templates },
  subject: { templates },
} satisfies Readonly<Record<string, t.Members>>

/** Of a contact: customers may name the same URL, and must not share a secret that Weir derives. */
export const contactWebhook = {
  ...endpointKeys.webhook,
  secretEnv: t.required('Environment variable with the whsec_… secret.', variable),
}

/** The values of these keys, by type. */
export type EndpointKeys = { readonly [T in keyof typeof endpointKeys]: t.Values<(typeof endpointKeys)[T]> }
