import type { ApiKey, Plan, Route, Subject } from './policy.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'
import {
  nameRule,
  parseName,
  parseSha256,
  parseSubjectId,
  parseTimeMs,
  parseTimeZone,
  subjectRule,
  timeRule,
} from './policy-values.ts'
import type { Limits } from './read-limits.ts'
import { OwnLimitsReader } from './read-own-limits.ts'
import { readPlanName } from './read-plan-name.ts'

/** Hex digits of the hash that name a key which has no `id`: enough to tell it from any other, too few to be of use. */
const keyIdDigits = 12
/** Keys of one subject; rotation needs two, and every one is another way in. */
const keysPerSubjectMax = 100

interface Identities {
  readonly subjects: Map<string, Subject>
  /** By hash. */
  readonly keys: Map<string, ApiKey>
}

/** Subjects and their keys. No hash and no key id occurs twice in a policy, whoever has it. */
export function readSubjects(
  reader: PolicyReader,
  place: Place,
  known: {
    readonly plans: ReadonlyMap<string, Plan | undefined>
    readonly limits: Limits
    readonly routes: readonly Route[]
  },
): Identities {
  const subjects = new Map<string, Subject>()
  const keys = new KeyRing(reader)
  const ownReader = new OwnLimitsReader(reader, known.limits, known.routes)
  const zones = new Map<string, string | undefined>()
  const zone = (text: string) => {
    if (!zones.has(text)) zones.set(text, parseTimeZone(text))
    return zones.get(text)
  }
  for (const [id, field] of reader.map(place, 'a map of subjects by id') ?? []) {
    if (parseSubjectId(id) === undefined) reader.problemAtKey(field, `the id of a subject must be ${subjectRule}`)
    const fields = reader.fields(field, 'a subject', ['plan', 'timeZone', 'anchor', 'keys', 'limits'], ['plan'])
    if (fields === undefined) continue
    const timeZoneAt = fields.get('timeZone')
    const timeZone =
      timeZoneAt === undefined ? 'UTC' : reader.text(timeZoneAt, 'an IANA time zone such as Asia/Kathmandu', zone)
    const anchorAt = fields.get('anchor')
    const anchor = anchorAt === undefined ? 1 : reader.integer(anchorAt, 1, 31)
    const planAt = fields.get('plan')
    const plan = planAt === undefined ? undefined : readPlanName(reader, planAt, known.plans)
    const ownLimits = ownReader.read(fields.get('limits'), plan)
    const isRight = plan !== undefined && timeZone !== undefined && anchor !== undefined && ownLimits !== undefined
    const subject = isRight ? { id, plan, timeZone, anchor, ownLimits } : undefined
    if (subject !== undefined) subjects.set(id, subject)
    keys.read(fields.get('keys'), subject)
  }
  return { subjects, keys: keys.byHash }
}

class KeyRing {
  readonly byHash = new Map<string, ApiKey>()
  readonly #reader: PolicyReader
  readonly #hashes = new Map<string, Place>()
  readonly #ids = new Map<string, Place>()

  constructor(reader: PolicyReader) {
    this.#reader = reader
  }

  read(place: Field | undefined, subject: Subject | undefined): void {
    if (place === undefined || this.#reader.isEmpty(place)) return
    const items = this.#reader.list(place, 'a list of keys such as [{ sha256: … }]') ?? []
    if (items.length > keysPerSubjectMax) {
      this.#reader.problem(place, `has ${items.length} keys; a subject has at most ${keysPerSubjectMax}`)
      return
    }
    for (const item of items) this.#readKey(item, subject)
  }

  #readKey(place: Place, subject: Subject | undefined): void {
    const fields = this.#reader.fields(place, 'a key', ['sha256', 'id', 'expires'], ['sha256'])
    const hashAt = fields?.get('sha256')
    const idAt = fields?.get('id')
    const expiresAt = fields?.get('expires')
    const what = 'the SHA-256 of a key in 64 hex digits (never the key itself)'
    const sha256 = hashAt === undefined ? undefined : this.#reader.secretText(hashAt, what, parseSha256)
    const given = idAt === undefined ? '' : this.#reader.text(idAt, nameRule, parseName)
    const expiresAtMs = expiresAt === undefined ? undefined : this.#reader.text(expiresAt, timeRule, parseTimeMs)
    if (hashAt === undefined || sha256 === undefined || given === undefined) return
    const id = given === '' ? sha256.slice(0, keyIdDigits) : given
    const sameHash = this.#hashes.get(sha256)
    const sameId = this.#ids.get(id)
    if (sameHash !== undefined) {
      this.#reader.problem(hashAt, `the same key is on line ${this.#reader.lineOf(sameHash)}`)
    } else if (sameId !== undefined) {
      this.#reader.problem(idAt ?? hashAt, `the key on line ${this.#reader.lineOf(sameId)} has the id ${id} too`)
    } else {
      this.#hashes.set(sha256, hashAt)
      this.#ids.set(id, idAt ?? hashAt)
      if (subject !== undefined) this.byHash.set(sha256, { id, sha256, subject, expiresAtMs })
    }
  }
}
