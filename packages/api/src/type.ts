import type TypeBox from 'typebox'

/*
 * TypeBox's types, without its code: 24 MB of memory in each process, which would only make such objects with it.
 */

type Schema = Readonly<Record<string, unknown>>

const optional = new WeakSet<object>()

const typed =
  (type: string) =>
  (rules: Schema = {}) => ({ type, ...rules })

function asOptional(schema: Schema): Schema {
  const member = { ...schema }
  optional.add(member)
  return member
}

function typedObject(properties: Readonly<Record<string, Schema>>, rules: Schema = {}): Schema {
  const required = Object.keys(properties).filter((name) => !optional.has(properties[name] ?? {}))
  return { type: 'object', ...(required.length === 0 ? {} : { required }), properties, ...rules }
}

const builders = {
  Array: (items: Schema, rules: Schema = {}) => ({ type: 'array', items, ...rules }),
  Boolean: typed('boolean'),
  Integer: typed('integer'),
  Number: typed('number'),
  Object: typedObject,
  Optional: asOptional,
  String: typed('string'),
  Union: (anyOf: readonly Schema[], rules: Schema = {}) => ({ anyOf, ...rules }),
  Unknown: (rules: Schema = {}) => ({ ...rules }),
  Unsafe: (schema: Schema) => ({ ...schema }),
}

/** The builders of TypeBox that the contract takes. */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>
