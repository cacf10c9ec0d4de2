import { answer, operation } from './operation.ts'
import { anyObject, flag, list, nullable, type Of, object, text, textOrNull, whole } from './schema.ts'

const status = object({
  at: text('RFC 3339'),
  ok: flag('true: nothing needs attention'),
  look: list(text('what needs attention'), 'in words; empty: all is well'),
  warnings: list(text('a part that works, and what may stop it')),
  complete_through: textOrNull('all before this is counted, except records in silent journals; null: unknown'),
  silent: list(object({ journal: text('process start'), since: text('time of its last watermark') })),
  gaps: nullable(
    list(object({ cause: text('docs/metering.md'), topic: text('topic name'), count: text('decisions, if known') })),
    'usage found missing within the last 24 h; null: unknown',
  ),
  failed_deliveries: nullable(
    list(object({ endpoint: text('endpoint name'), count: whole() })),
    'deliveries given up or dropped within the last 24 h; null: unknown',
  ),
  held_back: list(
    object({ endpoint: text('endpoint name'), by: text('name of the process'), addresses: whole() }),
    'endpoints whose deliveries are held back because they fail',
  ),
  ingress: textOrNull('address for clients; null: unknown'),
  redis: textOrNull('what is wrong with Redis; null: nothing'),
  policy: nullable(object({ change: text('id of the last change'), at: text('its time'), by: text('its author') })),
  processes: list(
    object({
      name: text('as in WEIR_STATUS_URLS'),
      url: text('address of its ops port'),
      ready: flag(),
      said: list(text('a line of its /readyz, or why there is no answer')),
      metrics: anyObject('main metrics, summed over their labels'),
    }),
  ),
})
/** What is known of all processes and servers. */
export type Status = Of<typeof status>
/** Whether anything is wrong now. */
export const getStatus = operation('GET /v1/status', {
  tag: 'status',
  scope: 'read',
  summary: 'Get the current status and whether anything is wrong',
  answers: { 200: answer('The status', status) },
})

const found = object({
  items: list(
    object({
      kind: text('subject, key, decision, alert, change, or a part of the policy: limit, plan, route, …'),
      name: text('name or id'),
    }),
  ),
})
/** Everything that has a name or an id. */
export const search = operation('GET /v1/search', {
  tag: 'search',
  scope: 'read',
  summary: 'Find everything with this exact name or id that the token may read',
  query: { q: text('the exact name or id', { minLength: 1, maxLength: 512 }) },
  answers: { 200: answer('The matches', found) },
  problems: [503],
})
