import type { ApiKey, Subject } from '../policy.ts'
import { nameRule, parseName, parseSha256, parseTimeMs, timeRule } from '../policy-values.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

/** Hex digits of the hash that name a key which has no `id`: enough to tell it from any other, too few to be of use. */
const keyIdDigits = 12
/** Keys of one subject; rotation needs two, and every one is another way in. */
export const keysPerSubjectMax = 100

/** What names a key that has no `id`. */
export const defaultKeyId = (sha256: string): string => sha256.slice(0, keyIdDigits)

/** Reads the keys of all subjects of a policy. No hash and no id occurs twice, whoever has it. */
export class KeyRing {
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
    const id = given === '' ? defaultKeyId(sha256) : given
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
