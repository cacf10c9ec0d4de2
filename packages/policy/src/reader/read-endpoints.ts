import { alertTypes } from '@weir/core/alerts/alert-types.ts'
import type { AlertChoice, Endpoint } from '../policy.ts'
import { nameRule, parseHttpUrl, parseName, parsePercent, parseVariableName } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

const endpointTypes = ['webhook', 'slack', 'email'] as const
type EndpointType = Endpoint['type']

const commonKeys = ['type', 'only', 'paused']
/** Of each type, the keys that it needs, and those that it may have besides. */
const keysOf: Readonly<Record<EndpointType, { readonly needs: readonly string[]; readonly may: readonly string[] }>> = {
  webhook: { needs: ['url', 'secretEnv'], may: ['allowPrivate'] },
  slack: { needs: ['urlEnv'], may: ['allowPrivate'] },
  email: { needs: ['to'], may: [] },
}
const allKeys = [...commonKeys, ...new Set(Object.values(keysOf).flatMap(({ needs, may }) => [...needs, ...may]))]

/** One message to all of them; a mailing list is one address. */
const recipientsMax = 20
const addressForm = /^[^\s@<>"(),:;\\[\]]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/
const parseAddress = (text: string) => (addressForm.test(text) ? text : undefined)

const variable = 'the name of an environment variable in capitals, such as OPS_SECRET (never the secret itself)'

type Fields = ReadonlyMap<string, Field>

/** Where alerts go, by name. No secret is ever in a policy. */
export function readEndpoints(reader: PolicyReader, place: Place): Map<string, Endpoint> {
  const endpoints = new Map<string, Endpoint>()
  for (const [name, field] of reader.map(place, 'a map of endpoints by name') ?? []) {
    if (parseName(name) === undefined) reader.problemAtKey(field, `the name of an endpoint must be ${nameRule}`)
    const fields = reader.fields(field, 'an endpoint', allKeys, [])
    const endpoint = fields === undefined ? undefined : readEndpoint(reader, name, field, fields)
    if (endpoint !== undefined) endpoints.set(name, endpoint)
  }
  return endpoints
}

function readEndpoint(reader: PolicyReader, name: string, place: Field, fields: Fields): Endpoint | undefined {
  const typeAt = fields.get('type')
  const type = typeAt === undefined ? 'webhook' : reader.oneOf(typeAt, endpointTypes)
  if (type === undefined || !hasItsKeys(reader, type, place, fields)) return undefined
  const [onlyAt, pausedAt] = [fields.get('only'), fields.get('paused')]
  const only = onlyAt === undefined ? {} : readChoice(reader, onlyAt)
  const isPaused = pausedAt === undefined ? false : reader.boolean(pausedAt)
  const own = readOwn(reader, type, fields)
  return only === undefined || isPaused === undefined || own === undefined
    ? undefined
    : { name, only, isPaused, ...own }
}

function hasItsKeys(reader: PolicyReader, type: EndpointType, place: Field, fields: Fields): boolean {
  const { needs, may } = keysOf[type]
  const missing = needs.filter((key) => !fields.has(key))
  for (const key of missing)
    reader.problemAtKey(place, `needs \`${key}\`${type === 'webhook' ? '' : `, as its type is ${type}`}`)
  let isRight = missing.length === 0
  for (const [key, field] of fields) {
    if (commonKeys.includes(key) || needs.includes(key) || may.includes(key)) continue
    reader.problemAtKey(field, `an endpoint of type ${type} has none`)
    isRight = false
  }
  return isRight
}

type Own<T extends Endpoint = Endpoint> = T extends Endpoint ? Omit<T, 'name' | 'only' | 'isPaused'> : never

function readOwn(reader: PolicyReader, type: EndpointType, fields: Fields): Own | undefined {
  const [urlAt, secretAt, urlEnvAt, toAt] = ['url', 'secretEnv', 'urlEnv', 'to'].map((key) => fields.get(key))
  const allowAt = fields.get('allowPrivate')
  const allowPrivate = allowAt === undefined ? false : reader.boolean(allowAt)
  if (type === 'email') {
    const to = toAt === undefined ? undefined : readAddresses(reader, toAt)
    return to === undefined ? undefined : { type, to }
  }
  if (type === 'slack') {
    const urlEnv = urlEnvAt === undefined ? undefined : reader.secretText(urlEnvAt, variable, parseVariableName)
    return urlEnv === undefined || allowPrivate === undefined ? undefined : { type, urlEnv, allowPrivate }
  }
  const what = 'an http or https URL without credentials and fragment'
  const url = urlAt === undefined ? undefined : reader.secretText(urlAt, what, parseHttpUrl)?.href
  const secretEnv = secretAt === undefined ? undefined : reader.secretText(secretAt, variable, parseVariableName)
  if (url === undefined || secretEnv === undefined || allowPrivate === undefined) return undefined
  return { type, url, secretEnv, allowPrivate }
}

function readAddresses(reader: PolicyReader, field: Field): readonly string[] | undefined {
  const items = reader.list(field, 'a list of addresses such as [ops@example.com]')
  if (items === undefined) return undefined
  if (items.length === 0 || items.length > recipientsMax) {
    return reader.problem(field, `must have 1 to ${recipientsMax} addresses, but has ${items.length}`)
  }
  const addresses = items.map((item) => reader.text(item, 'an address such as ops@example.com', parseAddress))
  return addresses.includes(undefined) ? undefined : addresses.filter((one) => one !== undefined)
}

function readChoice(reader: PolicyReader, place: Field): AlertChoice | undefined {
  const fields = reader.fields(place, 'a choice of alerts', ['types', 'limits', 'subjects', 'percent'], [])
  if (fields === undefined) return undefined
  const listOf = <T>(key: string, what: string, read: (item: Place) => T | undefined) => {
    const field = fields.get(key)
    const items = field === undefined ? undefined : reader.list(field, what)
    return items?.flatMap((item) => read(item) ?? [])
  }
  const types = listOf('types', 'a list such as [weir.quota.reached]', (item) => reader.oneOf(item, alertTypes))
  const limits = listOf('limits', 'a list of names of limits', (item) =>
    reader.text(item, `the name of a limit: ${nameRule}`, parseName),
  )
  const subjects = listOf('subjects', 'a list of subjects', (item) => reader.text(item, 'a subject', (text) => text))
  const percentAt = fields.get('percent')
  const percent =
    percentAt === undefined ? undefined : reader.text(percentAt, 'a percentage from 1% to 100%', parsePercent)
  return {
    ...(types === undefined ? {} : { types }),
    ...(limits === undefined ? {} : { limits }),
    ...(subjects === undefined ? {} : { subjects }),
    ...(percent === undefined ? {} : { percent }),
  }
}
