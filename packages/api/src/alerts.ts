import { deliveryOutcomes } from '@weir/core/alerts/alert-types.ts'
import { durationPattern, timePattern } from '@weir/policy/policy-values.ts'
import { partSchema } from '@weir/policy/reader/part-schema.ts'
import { answer, noBody, operation } from './operation.ts'
import {
  anyObject,
  closed,
  list,
  type Of,
  object,
  oneOf,
  optional,
  optionalBody,
  page,
  pageQuery,
  text,
  textOrNull,
  texts,
  textsByName,
  time,
  whole,
} from './schema.ts'
import { Type } from './type.ts'

const tag = 'alerts'

/** Deliveries of one bulk request; a caller with more repeats it. */
export const redeliveredMax = 10_000

const from = time('as in /v1/usage; default: a week before `to`')
const filters = {
  to: optional(time('as `from`; default: now')),
  time_zone: optional(text('time zone of dates; default: UTC')),
  subject: optional(text('only alerts about this subject')),
  type: optional(text('only this type, such as `weir.quota.reached`')),
  endpoint: optional(text('only deliveries to this endpoint; for a contact’s address `ENDPOINT/KIND-HASH`')),
}

const alertFields = {
  id: text('alert id, as receivers get it'),
  type: text('`ce_type`'),
  subject: text('subject that the alert is about'),
  time: text('when it was raised'),
  state: text('`raised`, or `late`: its period was over, so nobody was notified'),
  summary: text('the alert in a sentence'),
  data: anyObject('details of the alert'),
}
const listedAlert = object({ ...alertFields, deliveries: textsByName() })
/** An alert, with the last outcome at each endpoint. */
export type ListedAlert = Of<typeof listedAlert>

/** Alerts, newest first. */
export const listAlerts = operation('GET /v1/alerts', {
  tag,
  scope: 'read',
  reach: 'own',
  summary: 'List alerts, newest first, with the latest outcome at each endpoint',
  query: {
    from: optional(from),
    ...filters,
    outcome: optional(
      list(
        oneOf(deliveryOutcomes),
        'only alerts with this latest outcome at an endpoint, or at `endpoint`; repeat for any of several. Like `endpoint`, not available to callers limited to subjects',
        { minItems: 1, maxItems: deliveryOutcomes.length },
      ),
    ),
    ...pageQuery,
  },
  answers: { 200: answer('A page', page(listedAlert)) },
  problems: [422, 503, 504],
})

const delivery = object({
  endpoint: text('endpoint name in the policy; for a contact’s address `ENDPOINT/KIND-HASH`'),
  attempt: whole('0: not sent yet'),
  at: text('when'),
  outcome: text('queued, requested, delivered, failed, given_up, dropped, silenced'),
  status: whole('HTTP status of the response; 0: none'),
  ms: whole(),
  error: text('why it failed, or which silence suppressed it'),
  next_try: textOrNull('time of the next attempt'),
  answer: text('start of the response body; empty for endpoints with allowPrivate'),
})
const alert = object({
  ...alertFields,
  attempts_max: whole('Weir gives up after this many attempts per endpoint, or after 4 days'),
  deliveries: list(delivery),
})
/** An alert, with every step of its deliveries. */
export type Alert = Of<typeof alert>

const oneAlert = { id: text('alert id', { format: 'uuid' }) }
/** One alert. */
export const getAlert = operation('GET /v1/alerts/:id', {
  tag,
  scope: 'read',
  reach: 'own',
  summary: 'Get an alert with every step of its deliveries',
  params: oneAlert,
  answers: { 200: answer('The alert', alert) },
  problems: [404, 503],
})

const requested = object({ requested: whole('deliveries queued again') })
/** Delivers an alert once more. */
export const redeliverAlert = operation('POST /v1/alerts/:id/redeliver', {
  tag,
  scope: 'write',
  summary: 'Redeliver an alert under the same id',
  params: oneAlert,
  body: optionalBody({ endpoint: optional(text('only to this endpoint; default: all its endpoints')) }),
  answers: { 202: answer('Queued', requested) },
  problems: [404, 503],
})
/** Delivers once more what failed. */
export const redeliverFailed = operation('POST /v1/deliveries/redeliver', {
  tag,
  scope: 'write',
  summary: `Redeliver alerts that were given up or dropped, ${redeliveredMax.toLocaleString('en')} at a time`,
  body: closed({ from, ...filters }),
  answers: { 202: answer('Queued', requested) },
  problems: [503],
})
/** Sends an endpoint a test. */
export const testEndpoint = operation('POST /v1/endpoints/:name/test', {
  tag,
  scope: 'write',
  summary: 'Send a test alert to an endpoint; success re-enables a disabled endpoint',
  params: { name: text('endpoint name in the policy') },
  body: optionalBody({ subject: optional(text('subject to notify; required for an endpoint of type `subject`')) }),
  answers: { 202: answer('Sent', object({ id: text('alert id; the alert shows the outcome') })) },
  problems: [404, 503],
})

const endpointSecret = object({ secret: text('`whsec_…` (Standard Webhooks); does not change') })
/** Shows what webhooks of an endpoint are signed with. */
export const getEndpointSecret = operation('GET /v1/endpoints/:name/secret', {
  tag,
  scope: 'admin',
  summary: 'Get the signing secret of an endpoint without `secretEnv`',
  params: { name: text('endpoint name in the policy') },
  answers: { 200: answer('The secret', endpointSecret) },
  problems: [404, 503],
})

const choice = {
  subjects: optional(texts('alerts about these subjects; `_all`: watches over all subjects together')),
  limits: optional(texts('alerts about these limits')),
  types: optional(texts('alerts of these types, such as `weir.quota.reached`')),
  reason: optional(text('why, shown in the list')),
}
const silence = object({
  name: text('name of the silence'),
  ...choice,
  from: text('start: alerts raised from then on'),
  until: text('end of the silence, exclusive'),
  by: text('creator'),
  state: oneOf(['pending', 'active', 'ended']),
})
/** A silence. */
export type Silence = Of<typeof silence>

const { properties, anyOf = [] } = partSchema('silences')
const newSilence = Type.Object(
  { ...choice, from: optional(text('RFC 3339, not in the past; default: now')), for: text('1m to 30d') },
  {
    additionalProperties: false,
    described: {
      properties: {
        ...Object.fromEntries(Object.entries(properties as Record<string, object>).filter(([name]) => name in choice)),
        from: { ...text('RFC 3339, not in the past; default: now'), pattern: timePattern.source },
        for: { ...text('1m to 30d'), pattern: durationPattern },
      },
      anyOf,
    },
  },
)
/** Which alerts are to be sent to no endpoint. */
export type NewSilence = Of<typeof newSilence>

/** Silences there are. */
export const listSilences = operation('GET /v1/silences', {
  tag: 'silences',
  scope: 'read',
  summary: 'List silences, including those that ended within five days',
  query: pageQuery,
  answers: { 200: answer('A page', page(silence)) },
  problems: [503],
})
/** Keeps some alerts from every endpoint for a while. */
export const createSilence = operation('POST /v1/silences', {
  tag: 'silences',
  scope: 'write',
  summary: 'Silence some alerts at every endpoint for a while',
  body: newSilence,
  answers: { 201: answer('The silence', silence) },
  problems: [422, 503],
})
/** Ends a silence. */
export const endSilence = operation('DELETE /v1/silences/:name', {
  tag: 'silences',
  scope: 'write',
  summary: 'End a silence; new alerts are sent again',
  params: { name: text('name of the silence') },
  answers: { 204: noBody('Ended') },
  problems: [404, 422, 503],
})
