import { definedFields } from '@weir/core/defined-fields.ts'

/** What JSON can say. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject
/** An object of JSON. */
export interface JsonObject {
  readonly [name: string]: JsonValue
}

/**
 * Where weir.yaml has what a policy consists of, in the order in which one may refer to the other. Keys stand below
 * their subjects.
 */
export const sectionOf = {
  rateCard: 'rateCards',
  limit: 'limits',
  upstream: 'upstreams',
  meter: 'meters',
  route: 'routes',
  refusal: 'refusals',
  price: 'prices',
  plan: 'plans',
  endpoint: 'endpoints',
  watch: 'watches',
  silence: 'silences',
  block: 'blocks',
  identity: 'identity',
  token: 'tokens',
  portal: 'portals',
  unsubscribed: 'unsubscribed',
  ownAlerts: 'ownAlerts',
  subject: 'subjects',
} as const

/** The kind of an entity. */
export type EntityKind = keyof typeof sectionOf | 'key'

/** All of them, in that order. */
export const entityKinds = [...Object.keys(sectionOf), 'key'] as readonly EntityKind[]

/** Who has made an entity: `weir apply` takes away what a file no longer has, and never what the admin API has made. */
export const entityOrigins = ['file', 'admin'] as const
/** The maker of an entity. */
export type EntityOrigin = (typeof entityOrigins)[number]

/** What the admin API knows of a key that it made: not part of the policy, and absent for keys of a file. */
export interface Issue {
  /** RFC 3339, UTC. */
  readonly at: string
  /** The first characters of the key, by which its owner knows it again. */
  readonly prefix: string
}

/**
 * One part of a policy that is changed by itself. `body` is what weir.yaml has under its name, but: a route's has no
 * `match`, which is its name; a subject's has no `keys`; a key is identified by its SHA-256 in lower case and has
 * `{ subject, id, expires?, limits? }`; the name of `identity` is `identity`.
 */
export interface Entity {
  readonly kind: EntityKind
  readonly name: string
  readonly origin: EntityOrigin
  /**
   * Its place among those of its kind, not necessarily whole; those without come last, by name. Never of subjects and
   * keys.
   */
  readonly position: number | undefined
  readonly body: JsonObject
  /** Of keys alone. */
  readonly issue?: Issue | undefined
}

/** What an entity is to be; undefined = it is deleted. */
export interface EntityChange {
  readonly kind: EntityKind
  readonly name: string
  readonly entity: Entity | undefined
}

/** One thing that keeps a policy from being changed so. */
export interface PolicyFault {
  /** `limits.minute.size`, `routes["GET /v1/users"].cost`; empty for the policy as a whole. */
  readonly path: string
  readonly message: string
}

/** Returns JSON with sorted names: equal values have equal texts. */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name] ?? null)}`).join(',')}}`
}

/** Returns whether the value is an object of JSON, and neither null nor a list. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the change that adds or replaces an entity. */
export const putEntity = (entity: Entity): EntityChange => ({ kind: entity.kind, name: entity.name, entity })
/** Returns the change that deletes an entity. */
export const deleteEntity = (kind: EntityKind, name: string): EntityChange => ({ kind, name, entity: undefined })

/** A key's body in its one form. */
export function keyBody(key: {
  readonly subject: string
  readonly id: string
  readonly expiresAtMs: number | undefined
  readonly limits?: JsonValue | undefined
}): JsonObject {
  const { subject, id, expiresAtMs, limits } = key
  const expires = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString()
  return { subject, id, ...definedFields({ expires, limits }) }
}
