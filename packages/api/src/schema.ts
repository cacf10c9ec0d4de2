import type { JsonObject } from '@weir/policy/entities.ts'
import type { Static, TProperties, TSchema } from 'typebox'
import { Type } from './type.ts'

/**
 * Builders of the JSON Schemas that the contract is written in. Each schema is also a type: `Static<typeof schema>`.
 *
 * `described` in a schema holds rules that OpenAPI shows and that requests are not checked by: a handler words them
 * better than a pattern can, or answers another status.
 */

/** A type all of whose members are read-only, as answers are. */
export type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T

/** A schema of any type. */
export type Schema = TSchema

/** What a schema describes. */
export type Of<Schema extends TSchema> = Frozen<Static<Schema>>

/** The description of a schema that may have none. */
const worded = (description?: string) => (description === undefined ? {} : { description })

/** A text. */
export const text = (description: string, rules: object = {}) => Type.String({ description, ...rules })
/** A text, or null. */
export const textOrNull = (description: string) => nullable(text(description))
/** One of some texts. */
export const oneOf = <const Values extends readonly string[]>(values: Values, description?: string) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...worded(description) })
/** A whole number. */
export const whole = (description?: string, rules: object = {}) => Type.Integer({ ...worded(description), ...rules })
/** A whole number, or null. */
export const wholeOrNull = (description: string) => nullable(whole(description))
/** A number, or null. */
export const numberOrNull = (description: string) => nullable(Type.Number({ description }))
/** True or false. */
export const flag = (description?: string, rules: object = {}) => Type.Boolean({ ...worded(description), ...rules })
/** True, false, or null. */
export const flagOrNull = (description: string) => nullable(flag(description))

/** A list. */
export const list = <Item extends TSchema>(items: Item, description?: string, rules: object = {}) =>
  Type.Array(items, { ...worded(description), ...rules })
/** A list of texts. */
export const texts = (description: string, rules: object = {}) => list(Type.String(), description, rules)
/** Texts by name. */
export const textsByName = (description?: string) =>
  Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    ...worded(description),
  })

/** An object with these members, and perhaps others. */
export const object = <Members extends TProperties>(members: Members, description?: string) =>
  Type.Object(members, worded(description))
/** An object that has no other members. */
export const closed = <Members extends TProperties>(members: Members, rules: object = {}) =>
  Type.Object(members, { additionalProperties: false, ...rules })
/** A member that may be absent. */
export const optional = Type.Optional
/** A member that a client may leave out, and a handler finds with its default. */
export const defaulted = <Schema extends TSchema>(schema: Schema) => Type.Optional(schema) as unknown as Schema
/** A schema, or null. */
export const nullable = <Schema extends TSchema>(schema: Schema, description?: string) => {
  const { type } = schema as { readonly type?: string }
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [type, 'null'], ...worded(description) })
}
/** A body that may be left out. */
export const optionalBody = <Members extends TProperties>(members: Members) => nullable(closed(members))
/** An object with any members. */
export const anyObject = (description?: string) =>
  Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: true, ...worded(description) })
/** An object with any members, or null. */
export const anyObjectOrNull = (description?: string) => nullable(anyObject(description))

/** A schema with other words. */
export const described = <Schema extends TSchema>(schema: Schema, description: string, rules: object = {}) =>
  Type.Unsafe<Static<Schema>>({ ...schema, description, ...rules })

/** An address; the handler words what is none. */
export const address = (description: string) =>
  text(description, { described: { anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] } })
/** A request, such as `POST /v1/search`. */
export const methodAndPath = (description: string) => text(description, { described: { pattern: '^[A-Z]+ /' } })

const [day, clock] = ['\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])', '([01]\\d|2[0-3]):[0-5]\\d']
/** What a time in a query looks like. */
export const momentPattern = `^(now(-\\d{1,4}[mhd])?|${day}(T${clock}(:[0-5]\\d(\\.\\d{1,3})?)?(Z|[+-]${clock}))?)$`
/** A time as `from` has it. */
export const time = (description: string) => text(description, { described: { pattern: momentPattern } })

/** The parameters of a page. */
export const pageQuery = {
  after: optional(text('`next` from the previous page', { maxLength: 512 })),
  limit: defaulted(whole('rows per page', { minimum: 1, maximum: 1_000, default: 100 })),
}
/** The member of a page that names the next one. */
export const next = textOrNull('`after` of the next page; null on the last')
/** A page of items. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}
/** A page of items. */
export const page = <Item extends TSchema>(items: Item) => object({ items: list(items), next })

type Tree = Readonly<Record<string, unknown>>

function rewritten(schema: unknown, rewrite: (node: Tree) => Tree): unknown {
  if (Array.isArray(schema)) return schema.map((one) => rewritten(one, rewrite))
  if (typeof schema !== 'object' || schema === null) return schema
  const node = rewrite(schema as Tree)
  return Object.fromEntries(Object.entries(node).map(([name, one]) => [name, rewritten(one, rewrite)]))
}

/** The schema that requests are checked by. */
export const enforced = (schema: unknown) => rewritten(schema, ({ described: _, ...rules }) => rules)
/** The schema that OpenAPI shows. */
export const shown = (schema: unknown) =>
  rewritten(schema, ({ described: more, ...rules }) => ({ ...rules, ...(more as Tree | undefined) }))
