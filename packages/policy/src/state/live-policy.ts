import type { Entity, JsonObject, JsonValue, PolicyFault } from '../entities.ts'
import type {
  ApiKey,
  Contact,
  KeyLookup,
  OwnLimits,
  Policy,
  Subject,
  SubjectLookup,
  SubjectSettings,
} from '../policy.ts'
import { LevelRules } from '../reader/level-rules.ts'
import { contact } from '../reader/read-endpoints.ts'
import { type OwnLimitsReader, ownLimitsReader, ownVersions } from '../reader/read-own-limits.ts'
import { subjectReader, subjectSettings } from '../reader/read-subjects.ts'
import { ValueReader } from '../reader/value-reader.ts'
import {
  bodyOfShape,
  keyIdOf,
  type PackedIdentities,
  type PackedKey,
  type PackedSubject,
  type Shape,
} from './packed-identities.ts'

/** What a subject says of itself: its settings, or why it cannot be so. */
interface ReadSettings {
  readonly settings: SubjectSettings | undefined
  /** Paths begin below the subject: `plan`, empty for the subject itself. Empty exactly with settings. */
  readonly problems: readonly PolicyFault[]
}

/** Texts of keys' limits that are remembered; beyond, the remembering starts again. One is some 300 bytes. */
const keyTextsMax = 10_000

/** Reads subjects from JSON by the rules of weir.yaml and the definitions of one policy. */
export class SubjectRules {
  readonly plans: Policy['plans']
  readonly levels: LevelRules
  readonly #readOwnLimits: OwnLimitsReader
  readonly #readSubject: ReturnType<typeof subjectReader>
  /** Shapes that no subject has any more are collected with their answers. */
  readonly #known = new WeakMap<Shape, ReadSettings>()
  readonly #ofKeys = new WeakMap<OwnLimits, Map<string, OwnLimits | undefined>>()

  constructor(policy: Policy) {
    this.plans = policy.plans
    this.levels = new LevelRules(policy)
    this.#readOwnLimits = ownLimitsReader(policy.limits, policy.routes)
    this.#readSubject = subjectReader(policy, this.#readOwnLimits)
  }

  read(body: JsonObject): ReadSettings {
    const reader = new ValueReader()
    const found = subjectSettings.find(reader, reader.open(body))
    const settings = found === undefined ? undefined : this.#readSubject(reader, found)
    return { settings: reader.problemCount === 0 ? settings : undefined, problems: reader.faults }
  }

  /** Reads the limits of a key over those of its subject. */
  readOfKey(limits: JsonValue, owner: SubjectSettings) {
    const reader = new ValueReader()
    const versions = ownVersions.read(reader, reader.open(limits))
    const ownLimits = versions && this.#readOwnLimits(reader, versions, owner.plan, owner)
    return { ownLimits: reader.problemCount === 0 ? ownLimits : undefined, problems: reader.faults }
  }

  /** As `readOfKey`, once for each text and subject's limits; undefined where they do not fit. */
  ofKey(text: string, owner: SubjectSettings): OwnLimits | undefined {
    const known = this.#ofKeys.get(owner.ownLimits) ?? new Map<string, OwnLimits | undefined>()
    this.#ofKeys.set(owner.ownLimits, known)
    const name = `${owner.plan.name} ${text}`
    if (!known.has(name)) {
      if (known.size >= keyTextsMax) known.clear()
      known.set(name, this.readOfKey(JSON.parse(text), owner).ownLimits)
    }
    return known.get(name)
  }

  /** As `read`, once for each shape. */
  of(shape: Shape): ReadSettings {
    const known = this.#known.get(shape)
    if (known !== undefined) return known
    const found = this.read(bodyOfShape(shape))
    this.#known.set(shape, found)
    return found
  }
}

/** Definitions as the decisions need them, with the subjects and keys that there are now. */
export type CompiledPolicy = ReturnType<typeof compiledPolicy>

/** The policy of these definitions over identities that change below it. */
export function compiledPolicy(definitions: Policy, rules: SubjectRules, identities: () => PackedIdentities) {
  const live = {
    subjects: liveSubjects(identities, rules),
    keys: liveKeys(identities, rules),
    contacts: { get: (id: string) => contactOf(identities().contactOf(id)) },
  }
  const policy: Policy = { ...definitions, ...live }
  return { policy, rules }
}

/** The subjects as they are now, each made when it is asked for. */
function liveSubjects(identities: () => PackedIdentities, rules: SubjectRules): SubjectLookup {
  const make = (packed: PackedSubject | undefined) => subjectOf(packed, rules)
  return {
    get size() {
      return identities().subjects.size
    },
    get: (id) => make(identities().subjects.get(id)),
    keys: () => identities().subjects.keys(),
    values: () => made(identities().subjects.values(), make),
    isParent(id) {
      const { subjects, parents } = identities()
      const packed = subjects.get(id)
      return packed !== undefined && parents.has(packed)
    },
    settings: () => made(identities().shapes.values(), (shape) => rules.of(shape).settings),
  }
}

/** Finds a subject by its id. */
export type FindSubject = (id: string) => Subject | undefined

/** Finds subjects as an edit makes them, and all others as they are. */
export function findEdited(
  subjects: SubjectLookup,
  edited: ReadonlyMap<string, Entity | undefined>,
  rules: SubjectRules,
): FindSubject {
  const find = (id: string): Subject | undefined => {
    if (!edited.has(id)) {
      const subject = subjects.get(id)
      return subject?.parent === undefined ? subject : { ...subject, parent: find(subject.parent.id) }
    }
    const body = edited.get(id)?.body
    const settings = body === undefined ? undefined : rules.read(body).settings
    if (settings === undefined) return undefined
    return typeof body?.parent === 'string' ? { id, ...settings, parent: find(body.parent) } : { id, ...settings }
  }
  return find
}

/** The keys as they are now, by SHA-256. */
function liveKeys(identities: () => PackedIdentities, rules: SubjectRules): KeyLookup {
  const make = (sha256: string, key: PackedKey | undefined): ApiKey | undefined => {
    const subject = subjectOf(key?.subject, rules)
    if (key === undefined || subject === undefined) return undefined
    const known = { id: keyIdOf(sha256, key), sha256, subject, expiresAtMs: key.expiresAtMs }
    const limits = identities().keyLimits.get(sha256)
    if (limits === undefined) return known
    const ownLimits = rules.ofKey(limits, subject)
    return ownLimits && { ...known, subject: { ...subject, ownLimits } }
  }
  return {
    get size() {
      return identities().keys.size
    },
    get: (sha256) => make(sha256, identities().keys.get(sha256)),
    withId(id) {
      const sha256 = identities().keyIds.get(id) ?? ''
      return make(sha256, identities().keys.get(sha256))
    },
    keys: () => identities().keys.keys(),
    values: () => made(identities().keys, ([sha256, key]) => make(sha256, key)),
  }
}

/** Read for an alert only, so that a million of them stay texts. Undefined for one that a newer version has written. */
function contactOf(written: JsonValue | undefined): Contact | undefined {
  const reader = new ValueReader()
  const found = written === undefined ? undefined : contact.read(reader, reader.open(written))
  return reader.problemCount === 0 ? found : undefined
}

/** Undefined for a subject that came later than the definitions and does not fit them. */
function subjectOf(packed: PackedSubject | undefined, rules: SubjectRules): Subject | undefined {
  const settings = packed?.shape === undefined ? undefined : rules.of(packed.shape).settings
  if (packed === undefined || settings === undefined) return undefined
  const { plan, timeZone, anchor, ownLimits, selfService, ownAlerts, suspended, prices } = settings
  const subject = { id: packed.id, plan, timeZone, anchor, ownLimits, selfService, ownAlerts, suspended }
  const whole = prices === undefined ? subject : { ...subject, prices }
  if (packed.parent === undefined) return whole
  const parent = subjectOf(packed.parent, rules)
  return parent === undefined ? undefined : { ...whole, parent }
}

function* made<P, T>(packed: Iterable<P>, make: (one: P) => T | undefined): Iterable<T> {
  for (const one of packed) {
    const whole = make(one)
    if (whole !== undefined) yield whole
  }
}
