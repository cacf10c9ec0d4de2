import type { JsonObject, PolicyFault } from '../entities.ts'
import type { Policy } from '../policy.ts'
import { SubjectReader, type SubjectSettings, subjectSettings } from '../reader/read-subjects.ts'
import { ValueReader } from '../reader/value-reader.ts'
import { liveKeys, liveSubjects, type SettingsOf } from './live-lookups.ts'
import { bodyOfShape, type PackedIdentities, type Shape } from './packed-identities.ts'

/** Definitions as the decisions need them, with the subjects and keys that there are now. */
export interface CompiledPolicy {
  readonly policy: Policy
  readonly subjects: SubjectRules
}

/** What the definitions make of what subjects say of themselves. */
export interface SubjectRules {
  readonly read: ReturnType<typeof createSettingsReader>
  readonly settingsOf: SettingsOf
  /** Why subjects of the shape cannot be; empty for most. */
  faultsOf(shape: Shape): readonly PolicyFault[]
}

type ReadSettings =
  | { readonly kind: 'settings'; readonly settings: SubjectSettings }
  /** Paths begin below the subject: `.plan`, empty for the subject itself. */
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/** Reads what subjects say of themselves, from JSON, by the rules of weir.yaml. */
function createSettingsReader({ plans, limits, routes }: Policy): (body: JsonObject) => ReadSettings {
  const subjectReader = new SubjectReader({ plans, limits, routes })
  return function readSettings(body) {
    const reader = new ValueReader()
    const found = subjectSettings.find(reader, reader.open(body))
    const settings = found === undefined ? undefined : subjectReader.read(reader, found)
    if (settings !== undefined && reader.problemCount === 0) return { kind: 'settings', settings }
    return { kind: 'problems', problems: reader.problems }
  }
}

/** For definitions without subjects and keys. */
export function createSubjectRules(definitions: Policy): SubjectRules {
  const read = createSettingsReader(definitions)
  /** Shapes that no subject has any more are collected with their answers. */
  const known = new WeakMap<Shape, ReturnType<typeof read>>()
  const of = (shape: Shape) => {
    const before = known.get(shape)
    if (before !== undefined) return before
    const found = read(bodyOfShape(shape))
    known.set(shape, found)
    return found
  }
  return {
    read,
    settingsOf: (shape) => {
      const found = of(shape)
      return found.kind === 'settings' ? found.settings : undefined
    },
    faultsOf: (shape) => {
      const found = of(shape)
      return found.kind === 'problems' ? found.problems : []
    },
  }
}

/** The policy of these definitions over identities that change below it. */
export function compiledPolicy(
  definitions: Policy,
  subjects: SubjectRules,
  identities: () => PackedIdentities,
): CompiledPolicy {
  const { settingsOf } = subjects
  const live = { subjects: liveSubjects(identities, settingsOf), keys: liveKeys(identities, settingsOf) }
  return { policy: { ...definitions, ...live }, subjects }
}
