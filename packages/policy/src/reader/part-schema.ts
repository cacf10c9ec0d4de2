import { isJsonObject, type JsonObject, type JsonValue } from '../entities.ts'
import { policySchema } from './parse-policy.ts'

/** What stands under this key, which is an object. */
function under(schema: JsonValue | undefined, key: string): JsonObject {
  const found = isJsonObject(schema) ? schema[key] : undefined
  return isJsonObject(found) ? found : {}
}

/** The schema without its leave to be empty. */
function filled(schema: JsonObject): JsonObject {
  const { anyOf } = schema
  return (Array.isArray(anyOf) ? anyOf.find((one) => isJsonObject(one) && one.type !== 'null') : undefined) ?? schema
}

/** An entry without a key that the file alone has: here a route's `match` is in the path, and secrets are made. */
function without(key: string, entry: JsonObject): JsonObject {
  const { [key]: _, ...properties } = under(entry, 'properties')
  const { required } = entry
  if (!Array.isArray(required)) return { ...entry, properties }
  return { ...entry, properties, required: required.filter((one) => one !== key) }
}

/** An entry that has its name in itself. */
function named(entry: JsonObject, name: JsonObject): JsonObject {
  const { required } = entry
  return {
    ...entry,
    properties: { name, ...under(entry, 'properties') },
    required: ['name', ...(Array.isArray(required) ? required : [])],
  }
}

/** The whole of a section, such as `plans`, as the policy's schema has it. */
const sectionOf = (section: string) => filled(under(policySchema.properties, section))

/** Returns the JSON Schema of the names of a section's parts, such as those of plans. */
export function nameSchema(section: string): JsonObject {
  if (section === 'routes') return under(under(under(sectionOf(section), 'items'), 'properties'), 'match')
  return { type: 'string', ...under(sectionOf(section), 'propertyNames') }
}

/** Returns the JSON Schema of one part of a section, such as a plan, as the admin API takes it. */
export function partSchema(section: string): JsonObject {
  const whole = sectionOf(section)
  if (section === 'routes') return without('match', under(whole, 'items'))
  if (section === 'subjects') return without('keys', under(whole, 'additionalProperties'))
  if (section === 'tokens') return named(without('sha256', under(whole, 'additionalProperties')), nameSchema(section))
  return 'additionalProperties' in whole && isJsonObject(whole.additionalProperties)
    ? whole.additionalProperties
    : whole
}
