import type { ApiKey, Lookup, OwnLimits, Subject, SubjectLookup } from '../policy.ts'
import type { SubjectSettings } from '../reader/read-subjects.ts'
import { keyIdOf, type PackedIdentities, type PackedKey, type PackedSubject, type Shape } from './packed-identities.ts'

/** What shapes mean by the definitions of one policy; undefined for those that came later and do not fit them. */
export type SettingsOf = (shape: Shape) => SubjectSettings | undefined

/** The subjects as they are now, each made when it is asked for. */
export function liveSubjects(identities: () => PackedIdentities, settingsOf: SettingsOf): SubjectLookup {
  const make = (packed: PackedSubject | undefined) => subjectOf(packed, settingsOf)
  return {
    get size() {
      return identities().subjects.size
    },
    get: (id) => make(identities().subjects.get(id)),
    keys: () => identities().subjects.keys(),
    values: () => made(identities().subjects.values(), make),
    ownLimitSets: () => ownLimitSets(identities().shapes.values(), settingsOf),
  }
}

function* ownLimitSets(shapes: Iterable<Shape>, settingsOf: SettingsOf): Generator<OwnLimits> {
  for (const shape of shapes) {
    const settings = settingsOf(shape)
    if (settings !== undefined) yield settings.ownLimits
  }
}

/** The keys as they are now, by SHA-256. */
export function liveKeys(identities: () => PackedIdentities, settingsOf: SettingsOf): Lookup<ApiKey> {
  const make = (sha256: string, key: PackedKey | undefined): ApiKey | undefined => {
    const subject = key === undefined ? undefined : subjectOf(key.subject, settingsOf)
    if (key === undefined || subject === undefined) return undefined
    return { id: keyIdOf(sha256, key), sha256, subject, expiresAtMs: key.expiresAtMs }
  }
  return {
    get size() {
      return identities().keys.size
    },
    get: (sha256) => make(sha256, identities().keys.get(sha256)),
    keys: () => identities().keys.keys(),
    values: () => made(identities().keys, ([sha256, key]) => make(sha256, key)),
  }
}

function subjectOf(packed: PackedSubject | undefined, settingsOf: SettingsOf): Subject | undefined {
  const settings = packed?.shape === undefined ? undefined : settingsOf(packed.shape)
  if (packed === undefined || settings === undefined) return undefined
  const { plan, timeZone, anchor, ownLimits } = settings
  return { id: packed.id, plan, timeZone, anchor, ownLimits }
}

function* made<P, T>(packed: Iterable<P>, make: (one: P) => T | undefined): Iterable<T> {
  for (const one of packed) {
    const whole = make(one)
    if (whole !== undefined) yield whole
  }
}
