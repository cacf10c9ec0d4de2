import { alertTypes } from '@weir/core/alerts/alert-types.ts'
import type { Contact, Endpoint } from '../policy.ts'
import { namePattern, nameRule } from '../policy-values.ts'
import { addresses, contactWebhook, endpointKeys } from './endpoint-keys.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Mails of one alert to one subject. */
const contactAddressesMax = 5
/** What a choice of alerts names. */
export const alertChoice = {
  types: t.optional('Types of alerts.', t.list('a list such as [weir.quota.reached]', t.oneOf(alertTypes))),
  limits: t.optional(
    'Names of limits.',
    t.list('a list of names of limits', t.matching(`the name of a limit: ${nameRule}`, namePattern)),
  ),
  subjects: t.optional('Subjects.', t.list('a list of subjects', t.anyText('a subject'))),
}
const choice = t.object('a choice of alerts', {
  ...alertChoice,
  percent: t.optional('Quota alerts only from this percentage up.', t.percent),
})

const common = {
  only: t.optional('Which alerts to send. Default: all.', choice),
  paused: t.withDefault('Holds back its alerts until unpaused.', t.boolean, false),
}
const types = Object.keys(endpointKeys) as (keyof typeof endpointKeys)[]
const defaultType = 'webhook'
const typeOf = t.withDefault(`Default: ${defaultType}.`, t.oneOf(types), defaultType)
const allKeys = ['type', ...Object.keys(common), ...new Set(types.flatMap((type) => Object.keys(endpointKeys[type])))]

function schemaOf(type: Endpoint['type']) {
  const constant = { schema: { const: type }, read: () => type }
  const typeMember = type === defaultType ? t.optional('The default.', constant) : t.required('The type.', constant)
  return t.objectSchema({ type: typeMember, ...endpointKeys[type], ...common })
}

/** The section `endpoints`. */
export const endpointEntries = t.entries({ oneOf: types.map(schemaOf) }, { plural: 'endpoints', one: 'an endpoint' })

/** Where alerts go, by name. No secret is ever in a policy. */
export const readEndpoints = (reader: PolicyReader, at: SourcePosition) =>
  endpointEntries.each(reader, at, (name, field): Endpoint | undefined => {
    const fields = reader.fields(field, 'an endpoint', allKeys)
    const before = reader.problemCount
    const type = fields === undefined ? undefined : t.readMembers(reader, fields, { type: typeOf }).type
    if (fields === undefined || type === undefined || !hasItsKeys(reader, type, field, fields)) return undefined
    const { only = {}, paused: isPaused } = t.readMembers(reader, fields, common)
    const members: t.Members = endpointKeys[type]
    const endpoint = { name, only, isPaused, type, ...t.readMembers(reader, fields, members) }
    // Its keys are those of its type, and each is right if none was a problem.
    return reader.problemCount === before ? (endpoint as Endpoint) : undefined
  })

function hasItsKeys(reader: PolicyReader, type: Endpoint['type'], at: SourcePosition, fields: Fields): boolean {
  const before = reader.problemCount
  const members: t.Members = endpointKeys[type]
  for (const [key, { isRequired }] of Object.entries(members)) {
    if (!isRequired || fields.has(key)) continue
    reader.problemAtKey(at, `needs \`${key}\`${type === defaultType ? '' : `, as its type is ${type}`}`)
  }
  for (const key of allKeys) {
    if (key === 'type' || key in common || key in members) continue
    reader.refuseKey(fields, key, `an endpoint of type ${type} does not support it`)
  }
  return reader.problemCount === before
}

const contactMembers = {
  email: t.optional(
    'Mail addresses; each gets a separate mail.',
    addresses(contactAddressesMax, { nameOf: (address) => address }),
  ),
  webhook: t.optional('A webhook with its own secret.', t.object('a webhook of a contact', contactWebhook)),
  digest: t.retired('each alert is a mail of its own; remove it'),
  language: t.retired('mail has one set of templates; remove it'),
}

/** Where a subject itself gets its alerts. */
export const contact: t.ValueType<Contact> = t.checked(
  t.object('a contact', contactMembers, { anyOf: [t.has('email'), t.has('webhook')] }),
  (found, reader, at) =>
    found.email === undefined && found.webhook === undefined ? reader.problem(at, 'needs `email` or `webhook`') : found,
)
