import { definedFields } from '@weir/core/defined-fields.ts'
import {
  canonicalJson,
  type Entity,
  type EntityOrigin,
  type Issue,
  type JsonObject,
  type JsonValue,
  keyBody,
} from '../entities.ts'
import { defaultKeyId } from '../reader/read-keys.ts'

/** What many subjects say of themselves in the same words: kept once for all of them. */
export interface Shape {
  /** Canonical JSON of the body. */
  readonly text: string
  readonly origin: EntityOrigin
  /** As the body names it. */
  readonly plan: string
  /** Subjects that have it. */
  count: number
}

/** A subject as it is kept. */
export interface PackedSubject {
  readonly id: string
  /** Undefined only while a bulk is loaded: its keys, or who is below it, came before it. */
  shape: Shape | undefined
  parent: PackedSubject | undefined
  /** SHA-256 of its keys; nearly always one, which then needs no list. */
  keys: string | readonly string[] | undefined
}

/** A key as it is kept, by its SHA-256. */
export interface PackedKey {
  readonly subject: PackedSubject
  /** Undefined for the one that its hash gives it. */
  readonly id: string | undefined
  readonly expiresAtMs: number | undefined
  readonly origin: EntityOrigin
  readonly issue: Issue | undefined
}

/** A key that is to be stored. */
export interface NewKey extends Omit<PackedKey, 'subject' | 'id'> {
  readonly subject: string
  readonly id: string
  readonly limits?: JsonValue | undefined
}

/** How many of those right below a subject have a plan. */
interface PlanCount {
  readonly plan: string
  count: number
}

/** Bodies remembered word for word; beyond, the remembering starts again. */
const recentMax = 10_000

/**
 * Subjects and keys, packed: some 400 bytes for a subject with a key, of which Maps and the texts of ids and hashes are
 * nearly all. Checks nothing: what is put here fits.
 */
export class PackedIdentities {
  readonly subjects = new Map<string, PackedSubject>()
  readonly keys = new Map<string, PackedKey>()
  /** SHA-256 by id. */
  readonly keyIds = new Map<string, string>()
  readonly shapes = new Map<string, Shape>()
  /** Canonical JSON by subject: hardly two are equal, and a shape of its own for each would be read again and again. */
  readonly contacts = new Map<string, string>()
  /** Subjects that are above others. What plans those right below have says whether levels fit, without a search. */
  readonly parents = new Map<PackedSubject, readonly PlanCount[]>()
  /** Canonical JSON by SHA-256: keys with limits of their own are few. */
  readonly keyLimits = new Map<string, string>()
  /** Named last: its key comes next in a bulk, or one with its parent; a search among a million is most of a start. */
  #last: PackedSubject | undefined
  readonly #recent = { file: new Map<string, Shape>(), admin: new Map<string, Shape>() }

  putSubject(id: string, origin: EntityOrigin, { contact, parent, ...body }: JsonObject): void {
    const shape = this.#shapeOf(origin, body)
    // First in, then out: it may be the same one, which must not be forgotten in between.
    shape.count += 1
    const above = typeof parent === 'string' ? this.#namedAbove(parent) : undefined
    const subject = this.#named(id)
    this.#leave(subject.shape)
    this.#place(subject, shape, above)
    if (contact === undefined) this.contacts.delete(id)
    else this.contacts.set(id, canonicalJson(contact))
  }

  /** It has no keys any more, and nobody is below it. */
  deleteSubject(id: string): void {
    const subject = this.subjects.get(id)
    if (subject === undefined) return
    this.#leave(subject.shape)
    this.#place(subject, undefined, undefined)
    this.subjects.delete(id)
    this.#last = undefined
    this.contacts.delete(id)
  }

  /** One that is to come too, where it is not there yet. */
  #named(id: string): PackedSubject {
    if (this.#last?.id === id) return this.#last
    const known = this.subjects.get(id)
    const subject = known ?? { id, shape: undefined, parent: undefined, keys: undefined }
    if (known === undefined) this.subjects.set(id, subject)
    this.#last = subject
    return subject
  }

  #namedAbove(id: string): PackedSubject {
    const above = this.#last?.parent
    return above?.id === id ? above : this.#named(id)
  }

  #place(subject: PackedSubject, shape: Shape | undefined, parent: PackedSubject | undefined): void {
    this.#countBelow(subject, -1)
    subject.shape = shape
    subject.parent = parent
    this.#countBelow(subject, 1)
  }

  #countBelow({ parent, shape }: PackedSubject, by: 1 | -1): void {
    if (parent === undefined || shape === undefined) return
    const counts = this.parents.get(parent) ?? []
    const known = counts.find(({ plan }) => plan === shape.plan)
    if (known === undefined) this.parents.set(parent, [...counts, { plan: shape.plan, count: by }])
    else known.count += by
    if (known?.count !== 0) return
    const rest = counts.filter(({ count }) => count > 0)
    if (rest.length > 0) this.parents.set(parent, rest)
    else this.parents.delete(parent)
  }

  /** The JSON of a subject's contact; undefined for none. */
  contactOf(id: string): JsonValue | undefined {
    const text = this.contacts.get(id)
    return text === undefined ? undefined : JSON.parse(text)
  }

  /** For a subject that is to come too, in a bulk. */
  putKey(sha256: string, { subject, id, expiresAtMs, origin, issue, limits }: NewKey): void {
    this.deleteKey(sha256)
    const owner = this.#named(subject)
    owner.keys = owner.keys === undefined ? sha256 : [...keyList(owner), sha256]
    const given = id === defaultKeyId(sha256) ? undefined : id
    this.keys.set(sha256, { subject: owner, id: given, expiresAtMs, origin, issue })
    this.keyIds.set(id, sha256)
    if (limits !== undefined) this.keyLimits.set(sha256, canonicalJson(limits))
  }

  deleteKey(sha256: string): void {
    const key = this.keys.get(sha256)
    if (key === undefined) return
    const rest = keyList(key.subject).filter((one) => one !== sha256)
    key.subject.keys = rest.length > 1 ? rest : rest[0]
    this.keys.delete(sha256)
    this.keyLimits.delete(sha256)
    const id = keyIdOf(sha256, key)
    if (this.keyIds.get(id) === sha256) this.keyIds.delete(id)
  }

  subjectEntity(id: string): Entity | undefined {
    const { shape, parent } = this.subjects.get(id) ?? {}
    if (shape === undefined) return undefined
    const more = definedFields({ parent: parent?.id, contact: this.contactOf(id) })
    const body = { ...bodyOfShape(shape), ...more }
    return { kind: 'subject', name: id, origin: shape.origin, position: undefined, body }
  }

  keyEntity(sha256: string): Entity | undefined {
    const key = this.keys.get(sha256)
    if (key === undefined) return undefined
    const { subject, expiresAtMs, origin, issue } = key
    const limits = this.keyLimits.get(sha256)
    const body = keyBody({
      subject: subject.id,
      id: keyIdOf(sha256, key),
      expiresAtMs,
      limits: limits && JSON.parse(limits),
    })
    return { kind: 'key', name: sha256, origin, position: undefined, body, issue }
  }

  /** Most bodies were seen before word for word: then nothing needs to be put in order. */
  #shapeOf(origin: EntityOrigin, body: JsonObject): Shape {
    const words = JSON.stringify(body)
    const recent = this.#recent[origin].get(words)
    if (recent !== undefined && recent.count > 0) return recent
    const text = canonicalJson(body)
    const name = `${origin} ${text}`
    const shape = this.shapes.get(name) ?? { text, origin, plan: String(body.plan), count: 0 }
    this.shapes.set(name, shape)
    if (this.#recent[origin].size >= recentMax) this.#recent[origin].clear()
    this.#recent[origin].set(words, shape)
    return shape
  }

  #leave(shape: Shape | undefined): void {
    if (shape === undefined) return
    shape.count -= 1
    if (shape.count === 0) this.shapes.delete(`${shape.origin} ${shape.text}`)
  }
}

/** Returns the id of a key: its own, or the one that its hash gives it. */
export const keyIdOf = (sha256: string, { id }: PackedKey): string => id ?? defaultKeyId(sha256)

/** Returns the SHA-256 of each of a subject's keys. */
export function keyList({ keys }: PackedSubject): readonly string[] {
  if (keys === undefined) return []
  return typeof keys === 'string' ? [keys] : keys
}

/** The text is JSON of an object: this file made it. */
export const bodyOfShape = ({ text }: Shape): JsonObject => JSON.parse(text) as JsonObject
