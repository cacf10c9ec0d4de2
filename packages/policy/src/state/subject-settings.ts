import type { JsonObject, PolicyFault } from '../entities.ts'
import type { Policy } from '../policy.ts'
import type { Place, PolicyReader } from '../reader/policy-reader.ts'
import { SubjectReader, type SubjectSettings, subjectKeys } from '../reader/read-subjects.ts'
import { TextReader } from '../reader/text-reader.ts'
import { ValueReader } from '../reader/value-reader.ts'

export type ReadSettings =
  | { readonly kind: 'settings'; readonly settings: SubjectSettings }
  /** Paths begin below the subject: `.plan`, empty for the subject itself. */
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/** Reads what subjects say of themselves, from JSON, by the rules of weir.yaml. */
export function createSettingsReader({ plans, limits, routes }: Policy): (body: JsonObject) => ReadSettings {
  const subjectReader = new SubjectReader({ plans, limits, routes })

  const read = (reader: PolicyReader, root: Place) => {
    const fields = reader.fields(root, 'a subject', subjectKeys, ['plan'])
    return fields === undefined ? undefined : subjectReader.read(reader, fields)
  }

  /** Takes a hundred times as long, and knows the words for what is wrong. */
  const readText = (body: JsonObject): ReadSettings => {
    const reader = new TextReader('')
    const root = reader.open(JSON.stringify(body))
    const settings = root === undefined ? undefined : read(reader, root)
    if (settings !== undefined && reader.problems.length === 0) return { kind: 'settings', settings }
    return { kind: 'problems', problems: reader.problems.map(({ path, message }) => ({ path, message })) }
  }

  return function readSettings(body) {
    const reader = new ValueReader()
    const settings = read(reader, reader.open(body))
    return settings !== undefined && reader.isRight ? { kind: 'settings', settings } : readText(body)
  }
}
