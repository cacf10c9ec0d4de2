import type { ApiKey, Subject } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { type OwnLimitsReader, ownVersions } from './read-own-limits.ts'
import * as t from './value-types.ts'

/** Hex digits of the hash that name a key which has no `id`: enough to tell it from any other, too few to be of use. */
const keyIdDigits = 12
/** Keys of one subject; rotation needs two, and every one is another way in. */
export const keysPerSubjectMax = 100

/** What names a key that has no `id`. */
export const defaultKeyId = (sha256: string): string => sha256.slice(0, keyIdDigits)

const key = t.object('a key', {
  sha256: t.required('SHA-256 of the whole key: printf %s KEY | sha256sum.', t.sha256('key')),
  id: t.optional('Id of the key in records. Default: the first 12 digits of the hash.', t.name),
  limits: t.orEmpty("This key's overrides of limits that count by key, by limit name.", ownVersions),
  expires: t.optional('Expiry, after which the key is rejected: 2027-01-31T00:00:00Z.', t.time),
})

/** The `keys` of a subject, with their positions: whether a hash is another's too is known when all are read. */
export const keyList = t.list('a list of keys such as [{ sha256: … }]', key.found, {
  max: keysPerSubjectMax,
  wrongCount: (count) => `has ${count} keys; a subject has at most ${keysPerSubjectMax}`,
})

type FoundKeys = NonNullable<ReturnType<typeof keyList.read>>

/** The keys of all subjects of a policy. No hash and no id occurs twice, whichever subjects have it. */
export class KeyRing {
  readonly byHash = new Map<string, ApiKey>()
  readonly #reader: PolicyReader
  readonly #readOwnLimits: OwnLimitsReader
  readonly #hashes = new Map<string, SourcePosition>()
  readonly #ids = new Map<string, SourcePosition>()

  constructor(reader: PolicyReader, readOwnLimits: OwnLimitsReader) {
    this.#reader = reader
    this.#readOwnLimits = readOwnLimits
  }

  /** Takes the keys of one subject; `subject` is undefined where it is wrong itself. */
  add(keys: FoundKeys, subject: Subject | undefined): void {
    for (const { fields, values } of keys) {
      const { sha256, id: given, expires, limits } = values
      const [hashAt, idAt] = [fields.get('sha256'), fields.get('id')]
      if (hashAt === undefined || sha256 === undefined || (idAt !== undefined && given === undefined)) continue
      const id = given ?? defaultKeyId(sha256)
      const [sameHash, sameId] = [this.#hashes.get(sha256), this.#ids.get(id)]
      if (sameHash !== undefined) this.#reader.problem(hashAt, `this key is also ${this.#reader.where(sameHash)}`)
      else if (sameId !== undefined) {
        this.#reader.problem(idAt ?? hashAt, `the key ${this.#reader.where(sameId)} also has the id ${id}`)
      } else {
        this.#hashes.set(sha256, hashAt)
        this.#ids.set(id, idAt ?? hashAt)
        if (subject === undefined) continue
        const owner =
          limits === undefined || limits.size === 0
            ? subject
            : { ...subject, ownLimits: this.#readOwnLimits(this.#reader, limits, subject.plan, subject) }
        this.byHash.set(sha256, { id, sha256, subject: owner, expiresAtMs: expires })
      }
    }
  }
}
