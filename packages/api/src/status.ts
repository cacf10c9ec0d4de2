import { answer, operation } from './operation.ts'
import { anyObject, flag, list, nullable, type Of, object, text, textOrNull, whole } from './schema.ts'

const status = object({
  at: text('RFC 3339'),
  ok: flag('whether there is nothing to look at'),
  look: list(text('what to look at'), 'in words; empty where all is well'),
  warnings: list(text('a part that serves, and what may end that')),
  complete_through: textOrNull('all before it is counted, but for what silent journals hold; null: not known'),
  silent: list(object({ journal: text('process start'), since: text('its last mark') })),
  gaps: nullable(
    list(object({ cause: text('docs/metering.md'), topic: text('its topic'), count: text('decisions, if known') })),
    'what is missing from usage, noticed within 24 h; null: not known',
  ),
  failed_deliveries: nullable(
    list(object({ endpoint: text('its name'), count: whole() })),
    'given up or dropped within 24 h; null: not known',
  ),
  held_back: list(
    object({ endpoint: text('its name'), by: text('name of the process'), addresses: whole() }),
    'endpoints to which deliveries are held back now, since they fail',
  ),
  ingress: textOrNull('address by which clients reach it; null: not known'),
  redis: textOrNull('what is wrong with it; null for nothing'),
  policy: nullable(object({ change: text('id of the last change'), at: text('when'), by: text('by whom') })),
  processes: list(
    object({
      name: text('as in WEIR_STATUS_URLS'),
      url: text('its ops port'),
      ready: flag(),
      said: list(text('a line of its /readyz, or why there is none')),
      metrics: anyObject('its main metrics, summed over their labels'),
    }),
  ),
})
/** What is known of all processes and servers. */
export type Status = Of<typeof status>
/** Whether anything is wrong now. */
export const getStatus = operation('GET /v1/status', {
  tag: 'status',
  scope: 'read',
  summary: 'Whether anything is wrong now',
  answers: { 200: answer('What is known', status) },
})

const found = object({
  items: list(
    object({
      kind: text('subject, key, decision, alert, change, or a part of the policy: limit, plan, route, …'),
      name: text('its name or id'),
    }),
  ),
})
/** Everything that has a name or an id. */
export const search = operation('GET /v1/search', {
  tag: 'search',
  scope: 'read',
  summary: 'What has this name or id, of what the scopes of the token open',
  query: { q: text('the whole name or id', { minLength: 1, maxLength: 512 }) },
  answers: { 200: answer('Everything of this name', found) },
  problems: [503],
})
