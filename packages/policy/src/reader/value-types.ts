import type { JsonObject, JsonValue } from '../entities.ts'
import {
  durationPattern,
  namePattern,
  nameRule,
  parseDurationMs,
  parsePercent,
  parseSha256,
  parseTimeMs,
  percentPattern,
  sha256Pattern,
  subjectPattern,
  subjectRule,
  timePattern,
  timeRule,
} from '../policy-values.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'

/** How a value of the policy is written: what the reader accepts, and the same for editors, as JSON Schema. */
export interface ValueType<T> {
  readonly schema: JsonObject
  /** Returns undefined exactly when it has added a problem; of a list the items that are right. */
  read(reader: PolicyReader, at: SourcePosition): T | undefined
}

/** A text that `parse` understands. `schema` says as much of it as a pattern can. */
export const text = <T>(
  rule: string,
  parse: (text: string) => T | undefined,
  schema: JsonObject = {},
): ValueType<T> => ({ schema: { type: 'string', ...schema }, read: (reader, at) => reader.text(at, rule, parse) })

/** As `text`, of what may turn out to be a secret: no message repeats it. */
export const secretText = <T>(
  rule: string,
  parse: (text: string) => T | undefined,
  schema: JsonObject,
): ValueType<T> => ({ schema: { type: 'string', ...schema }, read: (reader, at) => reader.secretText(at, rule, parse) })

/** A text of this form. */
export const matching = (rule: string, pattern: RegExp): ValueType<string> =>
  text(rule, (written) => (pattern.test(written) ? written : undefined), { pattern: pattern.source })

/** Any text, such as a name that is looked up once everything is read. */
export const anyText = (rule: string): ValueType<string> => text(rule, (written) => written)

/** The name of a key, a token and the like. */
export const name: ValueType<string> = matching(nameRule, namePattern)

/** The form of subjects, for sections that go by them. */
export const subjectIds = { rule: subjectRule, pattern: subjectPattern }

/** A moment with its offset, in milliseconds since the epoch. */
export const time: ValueType<number> = text(timeRule, parseTimeMs, { pattern: timePattern.source })

// Lists show it on one line.
const reasonLengthMax = 200

/** Why a person did something. */
export const reason: ValueType<string> = text(
  `a text of at most ${reasonLengthMax} characters`,
  (written) => (written.length > reasonLengthMax ? undefined : written),
  { maxLength: reasonLengthMax },
)

/** What a credential is known by; `of` is a key or a token. */
export const sha256 = (of: string): ValueType<string> =>
  secretText(`the SHA-256 of a ${of} in 64 hex digits (never the ${of} itself)`, parseSha256, {
    pattern: sha256Pattern.source,
  })

/** A text such as `80%`. */
export const percent: ValueType<number> = text('a percentage from 1% to 100%', parsePercent, {
  pattern: percentPattern.source,
})

/** A whole number between two others. */
export const integer = (minimum: number, maximum: number): ValueType<number> => ({
  schema: { type: 'integer', minimum, maximum },
  read: (reader, at) => reader.integer(at, minimum, maximum),
})

/** `true` or `false`. */
export const boolean: ValueType<boolean> = {
  schema: { type: 'boolean' },
  read: (reader, at) => {
    const value = reader.scalar(at)
    return typeof value === 'boolean' ? value : reader.wrong(at, 'must be true or false')
  },
}

/** One of these words. `others` are hints for words that are known elsewhere, as `reader.oneOf` takes them. */
export const oneOf = <const T extends string>(
  options: readonly T[],
  others?: ReadonlyMap<string, string>,
): ValueType<T> => ({ schema: { enum: options }, read: (reader, at) => reader.oneOf(at, options, others) })

/** A duration between two others, in milliseconds; with `wholeMs` a multiple of it, which `wholeWords` calls. */
export function duration(
  min: string,
  max: string,
  {
    rule = 'a duration such as 10s, 1m, 2h or 7d',
    wholeMs = 1,
    wholeWords = '',
  }: { readonly rule?: string; readonly wholeMs?: number; readonly wholeWords?: string } = {},
): ValueType<number> {
  const [minMs, maxMs] = [parseDurationMs(min) ?? 0, parseDurationMs(max) ?? 0]
  return {
    schema: { type: 'string', pattern: durationPattern },
    read(reader, at) {
      const ms = reader.text(at, rule, parseDurationMs)
      if (ms === undefined || (ms >= minMs && ms <= maxMs && ms % wholeMs === 0)) return ms
      return reader.problem(at, `must be ${wholeWords}from ${min} to ${max}`)
    },
  }
}

/** A value of the type that `check` takes too; it returns undefined where it has added a problem. */
export const checked = <T, R>(
  type: ValueType<T>,
  check: (value: T, reader: PolicyReader, at: SourcePosition) => R | undefined,
  schema: JsonObject = {},
): ValueType<R> => ({
  schema: { ...type.schema, ...schema },
  read(reader, at) {
    const value = type.read(reader, at)
    return value === undefined ? undefined : check(value, reader, at)
  },
})

/** A value with where it is written. */
export interface Located<T> {
  readonly value: T
  readonly at: SourcePosition
}

/** A value with its position, for what is known to be wrong only when everything is read. */
export const located = <T>(type: ValueType<T>): ValueType<Located<T>> => ({
  schema: type.schema,
  read(reader, at) {
    const value = type.read(reader, at)
    return value === undefined ? undefined : { value, at }
  },
})

interface ListBounds<T> {
  readonly min?: number
  readonly max?: number
  /** The problem of a list with another number of items. */
  readonly wrongCount?: (count: number) => string
  /** What no two items may have in common; without it items may be equal. */
  readonly nameOf?: (item: T) => string | number
}

/** A list; `what` says what it is of. */
export function list<T>(what: string, item: ValueType<T>, bounds: ListBounds<T> = {}) {
  const { min = 0, max = Number.POSITIVE_INFINITY, wrongCount, nameOf } = bounds
  const counts = { ...(min > 0 ? { minItems: min } : {}), ...(Number.isFinite(max) ? { maxItems: max } : {}) }
  /** The items of a list of the right length, for one so long that its values must not be in memory together. */
  const items = (reader: PolicyReader, at: SourcePosition) => {
    const found = reader.list(at, what)
    const isWrong = found !== undefined && (found.length < min || found.length > max)
    return isWrong && wrongCount !== undefined ? reader.problem(at, wrongCount(found.length)) : found
  }
  return {
    schema: { type: 'array', items: item.schema, ...counts, ...(nameOf === undefined ? {} : { uniqueItems: true }) },
    items,
    read(reader: PolicyReader, at: SourcePosition): readonly T[] | undefined {
      const positions = items(reader, at)
      if (positions === undefined) return undefined
      const seen = nameOf === undefined ? undefined : new Set<string | number>()
      const values: T[] = []
      for (const itemAt of positions) {
        const value = item.read(reader, itemAt)
        if (value === undefined) continue
        const name = nameOf?.(value)
        if (name !== undefined && seen?.has(name)) reader.problem(itemAt, `${name} is named twice`)
        else values.push(value)
        if (name !== undefined) seen?.add(name)
      }
      return values
    },
  }
}

/** JSON Schema of objects that have the key, with this value if one is given. */
export const has = (key: string, value?: JsonValue): JsonObject => ({
  required: [key],
  ...(value === undefined ? {} : { properties: { [key]: { const: value } } }),
})

/** JSON Schema of objects that have none of the keys. */
export const without = (...keys: readonly string[]): JsonObject => ({
  properties: Object.fromEntries(keys.map((key) => [key, false])),
})

/** JSON Schema of values of which the second holds wherever the first does. */
export const implies = (condition: JsonObject, consequence: JsonObject): JsonObject => ({
  anyOf: [{ not: condition }, consequence],
})

/** A key of an object: its type, and what editors show with it. */
interface Member<T> {
  readonly type: ValueType<NonNullable<T>>
  readonly about: string
  readonly isRequired: boolean
  /** Whether an empty value is as good as none. */
  readonly mayBeEmpty?: boolean
  /** The value where none is written. */
  readonly otherwise?: T
}

/** A key that must be written. */
export const required = <T extends NonNullable<unknown>>(about: string, type: ValueType<T>): Member<T> => ({
  about,
  type,
  isRequired: true,
})

/** A key that may be left out. */
export const optional = <T extends NonNullable<unknown>>(about: string, type: ValueType<T>): Member<T | undefined> => ({
  about,
  type,
  isRequired: false,
})

const titleLengthMax = 64

/** What customers read of a limit or a plan. */
export const publicTexts = {
  title: optional(
    'Name shown to customers.',
    text(
      `a text of 1 to ${titleLengthMax} characters`,
      (written) => (written.length < 1 || written.length > titleLengthMax ? undefined : written),
      { minLength: 1, maxLength: titleLengthMax },
    ),
  ),
  about: optional('Description shown to customers.', reason),
}

/** A key that has this value if it is left out. */
export const withDefault = <T extends NonNullable<unknown>>(
  about: string,
  type: ValueType<T>,
  otherwise: T,
): Member<T> => ({ about, type, isRequired: false, otherwise })

/** As `optional`, of a value that may be left empty. */
export const orEmpty = <T extends NonNullable<unknown>>(about: string, type: ValueType<T>): Member<T | undefined> => ({
  ...optional(about, type),
  mayBeEmpty: true,
})

/** A key that is read and does nothing any more; `message` says what to do, unless `read` keeps that for later. */
export const retired = (
  message: string,
  read: ValueType<never>['read'] = (reader, at) => reader.remark(at, message),
): Member<undefined> => ({
  about: `No longer read: ${message}`,
  type: { schema: { deprecated: true }, read },
  isRequired: false,
})

/** The keys of an object, by name. */
export type Members = Readonly<Record<string, Member<unknown>>>

/** The values of an object that is right. */
export type Values<M extends Members> = { readonly [K in keyof M]: M[K] extends Member<infer T> ? T : never }

/** The values of an object of which some may be wrong, and are undefined then. */
export type FoundValues<M extends Members> = { readonly [K in keyof M]: Values<M>[K] | undefined }

type MemberList = readonly (readonly [name: string, member: Member<unknown>])[]
const lists = new WeakMap<Members, MemberList>()

/** The members as a list, made once: a policy of a million subjects reads the same ones as often. */
function listOf(members: Members): MemberList {
  const list = lists.get(members) ?? Object.entries(members)
  lists.set(members, list)
  return list
}

/** Reads these keys of an object; the others are another's. What is neither written nor right is absent. */
export function readMembers<M extends Members>(reader: PolicyReader, fields: Fields, members: M): FoundValues<M> {
  const values: Record<string, unknown> = {}
  for (const [name, { type, otherwise, mayBeEmpty = false }] of listOf(members)) {
    const at = fields.get(name)
    const value = at === undefined || (mayBeEmpty && reader.isEmpty(at)) ? otherwise : type.read(reader, at)
    if (value !== undefined) values[name] = value
  }
  return values as FoundValues<M>
}

/** JSON Schema of an object with these keys and no others. */
export function objectSchema(members: Members, rules: JsonObject = {}): JsonObject {
  const names = Object.keys(members).filter((name) => members[name]?.isRequired)
  return {
    type: 'object',
    additionalProperties: false,
    ...(names.length === 0 ? {} : { required: names }),
    properties: Object.fromEntries(Object.entries(members).map(([name, member]) => [name, memberSchema(member)])),
    ...rules,
  }
}

function memberSchema({ type, about, mayBeEmpty = false, otherwise }: Member<unknown>): JsonObject {
  // A default that is written as it is read: a duration is a text, and read as a number.
  const isNumber = typeof otherwise === 'number' && type.schema.type === 'integer'
  const isPlain = isNumber || typeof otherwise === 'string' || typeof otherwise === 'boolean'
  const written = isPlain ? { default: otherwise } : {}
  return { description: about, ...(mayBeEmpty ? emptyOr(type.schema) : type.schema), ...written }
}

/** A value that may be left empty, as when all below it is commented out. */
export const emptyOr = (schema: JsonObject): JsonObject => ({ anyOf: [{ type: 'null' }, schema] })

/** What can be read of an object that may be wrong, with the positions of what is written. */
export interface FoundObject<M extends Members> {
  readonly fields: Fields
  readonly values: FoundValues<M>
}

/** An object with these keys and no others. `rules` are JSON Schema for what holds between them. */
export function object<M extends Members>(what: string, members: M, rules: JsonObject = {}) {
  const known = Object.keys(members)
  const needed = known.filter((name) => members[name]?.isRequired)
  const schema = objectSchema(members, rules)
  const find = (reader: PolicyReader, at: SourcePosition): FoundObject<M> | undefined => {
    const fields = reader.fields(at, what, known, needed)
    return fields === undefined ? undefined : { fields, values: readMembers(reader, fields, members) }
  }
  return {
    members,
    schema,
    find,
    /** As a type of its own, for lists of objects that are checked once all is read. */
    found: { schema, read: find },
    read(reader: PolicyReader, at: SourcePosition): Values<M> | undefined {
      const before = reader.problemCount
      const found = find(reader, at)
      return reader.problemCount > before ? undefined : (found?.values as Values<M> | undefined)
    },
  }
}

interface EntriesRule {
  /** In the plural: `limits`. */
  readonly plural: string
  /** With its article: `a limit`. */
  readonly one: string
  readonly max?: number
  /** Names that mean something else, and what. */
  readonly reserved?: { readonly names: readonly string[]; readonly message: string }
  /** Another rule for the names than `nameRule`; they are called ids then. */
  readonly ids?: { readonly rule: string; readonly pattern: RegExp; readonly called?: string }
}

/** A section of entries by name. */
export function entries(schema: JsonObject, { plural, one, max, reserved, ids }: EntriesRule) {
  const called = ids === undefined ? 'name' : (ids.called ?? 'id')
  const { rule, pattern } = ids ?? { rule: nameRule, pattern: namePattern }
  return {
    schema: {
      type: ['object', 'null'],
      propertyNames: { pattern: pattern.source, ...(reserved === undefined ? {} : { not: { enum: reserved.names } }) },
      additionalProperties: schema,
      ...(max === undefined ? {} : { maxProperties: max }),
    },
    /** As many as there may be; one with a wrong name is read all the same. */
    read(reader: PolicyReader, at: SourcePosition): Iterable<readonly [string, SourcePosition]> {
      const fields = reader.map(at, `a map of ${plural} by ${called}`) ?? new Map<string, SourcePosition>()
      if (max !== undefined && fields.size > max) {
        reader.problem(at, `has ${fields.size} ${plural}; a policy can have at most ${max}`)
      }
      const taken = max === undefined ? fields : [...fields].slice(0, max)
      for (const [name, field] of taken) {
        if (!pattern.test(name)) reader.problemAtKey(field, `the ${called} of ${one} must be ${rule}`)
        if (reserved?.names.includes(name)) reader.problemAtKey(field, reserved.message)
      }
      return taken
    },
    /** What `make` reads of each; undefined for those that are wrong. */
    each<T>(
      reader: PolicyReader,
      at: SourcePosition,
      make: (name: string, at: SourcePosition) => T | undefined,
    ): ReadonlyMap<string, T | undefined> {
      return new Map(Array.from(this.read(reader, at), ([name, field]) => [name, make(name, field)]))
    },
  }
}
