import { type Checks, isFields, isText, wrongField } from './fields.ts'

/** The part of JSON Schema that records are described with. Formats and patterns are for readers alone. */
export interface Schema {
  readonly type?: 'string' | 'integer' | 'array' | 'object'
  readonly const?: unknown
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly format?: 'uuid'
  readonly pattern?: string
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema
  readonly maxProperties?: number
  readonly description?: string
}

type Members<S> = S extends { readonly properties: infer P; readonly required: readonly (infer R)[] }
  ? { readonly [K in Extract<keyof P, R>]: ValueOf<P[K]> } & { readonly [K in Exclude<keyof P, R>]?: ValueOf<P[K]> }
  : Readonly<Record<string, S extends { readonly additionalProperties: infer Value } ? ValueOf<Value> : string>>

/** What a schema describes. */
export type ValueOf<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly type: 'string' }
      ? string
      : S extends { readonly type: 'integer' }
        ? number
        : S extends { readonly type: 'array'; readonly items: infer Item }
          ? readonly ValueOf<Item>[]
          : Members<S>

/** Returns the check of one value. */
function checkOf(schema: Schema): (value: unknown) => boolean {
  if (schema.const !== undefined) return (value) => value === schema.const
  const { enum: known, minimum = Number.NEGATIVE_INFINITY } = schema
  if (known !== undefined) return (value) => known.some((one) => one === value)
  if (schema.type === 'string') return isText
  if (schema.type === 'integer') return (value) => Number.isSafeInteger(value) && Number(value) >= minimum
  if (schema.type === 'array') {
    const check = checkOf(schema.items ?? {})
    return (value) => Array.isArray(value) && value.every(check)
  }
  const { properties, required = [], additionalProperties: others = {}, maxProperties = Number.MAX_VALUE } = schema
  if (properties === undefined) {
    const check = checkOf(others)
    const isMany = (values: readonly unknown[]) => values.length > maxProperties
    return (value) => isFields(value) && !isMany(Object.values(value)) && Object.values(value).every(check)
  }
  const checks = checksOf(properties, required)
  return (value) => wrongField(value, checks) === undefined
}

/** Returns the checks of an object's members; those that are not required may be absent. */
export const checksOf = (properties: Readonly<Record<string, Schema>>, required: readonly string[]): Checks =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const check = checkOf(schema)
      return [name, required.includes(name) ? check : (value: unknown) => value === undefined || check(value)]
    }),
  )
