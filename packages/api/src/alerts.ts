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

const from = time('as in /v1/usage; a week before `to` if absent')
const filters = {
  to: optional(time('the same; now if absent')),
  time_zone: optional(text('where dates begin; UTC if absent')),
  subject: optional(text('whose')),
  type: optional(text('such as `weir.quota.reached`')),
  endpoint: optional(text('only deliveries to this endpoint; of a contact’s address `ENDPOINT/KIND-HASH`')),
}

const alertFields = {
  id: text('as subscribers and receivers get it'),
  type: text('`ce_type`'),
  subject: text('whom it is about'),
  time: text('when it was raised'),
  state: text('`raised`, or `late`: its period was over, and no subscriber was notified'),
  summary: text('the same in a sentence'),
  data: anyObject('what it says'),
}
const listedAlert = object({ ...alertFields, deliveries: textsByName() })
/** An alert, with the last outcome at each endpoint. */
export type ListedAlert = Of<typeof listedAlert>

/** Alerts, newest first. */
export const listAlerts = operation('GET /v1/alerts', {
  tag,
  scope: 'read',
  reach: 'own',
  summary: 'Alerts, newest first, with the last outcome at each endpoint',
  query: {
    from: optional(from),
    ...filters,
    outcome: optional(
      list(
        oneOf(deliveryOutcomes),
        'only those whose last outcome at an endpoint, or at `endpoint`, is this; several times: any of these. Not, as `endpoint`, for callers limited to subjects',
        { minItems: 1, maxItems: deliveryOutcomes.length },
      ),
    ),
    ...pageQuery,
  },
  answers: { 200: answer('A page', page(listedAlert)) },
  problems: [422, 503, 504],
})

const delivery = object({
  endpoint: text('its name in the policy; of a contact’s address `ENDPOINT/KIND-HASH`'),
  attempt: whole('0: nothing sent yet'),
  at: text('when'),
  outcome: text('queued, requested, delivered, failed, given_up, dropped, silenced'),
  status: whole('of the answer; 0: none'),
  ms: whole(),
  error: text('why it failed, or which silence it falls under'),
  next_try: textOrNull('when it is tried again'),
  answer: text('the beginning of the answer’s body; empty for endpoints with allowPrivate'),
})
const alert = object({
  ...alertFields,
  attempts_max: whole('attempts at an endpoint before it is given up, or 4 days'),
  deliveries: list(delivery),
})
/** An alert, with every step of its deliveries. */
export type Alert = Of<typeof alert>

const oneAlert = { id: text('of the alert', { format: 'uuid' }) }
/** One alert. */
export const getAlert = operation('GET /v1/alerts/:id', {
  tag,
  scope: 'read',
  reach: 'own',
  summary: 'One alert, with every step of its deliveries',
  params: oneAlert,
  answers: { 200: answer('The alert', alert) },
  problems: [404, 503],
})

const requested = object({ requested: whole('deliveries that start again') })
/** Delivers an alert once more. */
export const redeliverAlert = operation('POST /v1/alerts/:id/redeliver', {
  tag,
  scope: 'write',
  summary: 'Deliver an alert once more, under the same id',
  params: oneAlert,
  body: optionalBody({ endpoint: optional(text('only there; without it wherever it went, or was to go')) }),
  answers: { 202: answer('It is queued', requested) },
  problems: [404, 503],
})
/** Delivers once more what failed. */
export const redeliverFailed = operation('POST /v1/deliveries/redeliver', {
  tag,
  scope: 'write',
  summary: `Deliver once more what was given up or dropped, ${redeliveredMax.toLocaleString('en')} at a time`,
  body: closed({ from, ...filters }),
  answers: { 202: answer('They are queued', requested) },
  problems: [503],
})
/** Sends an endpoint a test. */
export const testEndpoint = operation('POST /v1/endpoints/:name/test', {
  tag,
  scope: 'write',
  summary: 'Send an endpoint a test; one that was disabled and takes it is enabled',
  params: { name: text('in the policy') },
  body: optionalBody({ subject: optional(text('whose contact, at an endpoint of type `subject`, which needs it')) }),
  answers: { 202: answer('It is on its way', object({ id: text('of the alert, which says how it went') })) },
  problems: [404, 503],
})

const endpointSecret = object({ secret: text('`whsec_…`, by Standard Webhooks; it stays the same') })
/** Shows what webhooks of an endpoint are signed with. */
export const getEndpointSecret = operation('GET /v1/endpoints/:name/secret', {
  tag,
  scope: 'admin',
  summary: 'The secret that signs the webhooks of an endpoint without `secretEnv`',
  params: { name: text('in the policy') },
  answers: { 200: answer('The secret', endpointSecret) },
  problems: [404, 503],
})

const choice = {
  subjects: optional(texts('alerts about these; `_all` for those of watches over all together')),
  limits: optional(texts('alerts about these limits')),
  types: optional(texts('alerts of these types, such as `weir.quota.reached`')),
  reason: optional(text('why, for the others who read the list')),
}
const silence = object({
  name: text('of the silence'),
  ...choice,
  from: text('alerts raised from then on'),
  until: text('the first instant after it'),
  by: text('who made it'),
  state: oneOf(['pending', 'active', 'ended']),
})
/** A silence. */
export type Silence = Of<typeof silence>

const { properties, anyOf = [] } = partSchema('silences')
const newSilence = Type.Object(
  { ...choice, from: optional(text('RFC 3339, from now on; now without it')), for: text('1m to 30d') },
  {
    additionalProperties: false,
    described: {
      properties: {
        ...Object.fromEntries(Object.entries(properties as Record<string, object>).filter(([name]) => name in choice)),
        from: { ...text('RFC 3339, from now on; now without it'), pattern: timePattern.source },
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
  summary: 'Silences there are, and those that ended within five days',
  query: pageQuery,
  answers: { 200: answer('A page', page(silence)) },
  problems: [503],
})
/** Keeps some alerts from every endpoint for a while. */
export const createSilence = operation('POST /v1/silences', {
  tag: 'silences',
  scope: 'write',
  summary: 'Keep some alerts from every endpoint for a while',
  body: newSilence,
  answers: { 201: answer('The silence', silence) },
  problems: [422, 503],
})
/** Ends a silence. */
export const endSilence = operation('DELETE /v1/silences/:name', {
  tag: 'silences',
  scope: 'write',
  summary: 'End a silence: alerts from now on are sent',
  params: { name: text('of the silence') },
  answers: { 204: noBody('Ended') },
  problems: [404, 422, 503],
})
