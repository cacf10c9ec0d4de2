import type { JsonObject, PolicyFault } from './entities.ts'
import { noOwnLimits, type Policy } from './policy.ts'
import { knownTimeZone, SubjectReader, type SubjectSettings, subjectKeys } from './read-subjects.ts'
import { TextReader } from './text-reader.ts'

export type ReadSettings =
  | { readonly kind: 'settings'; readonly settings: SubjectSettings }
  /** Paths begin below the subject: `.plan`, empty for the subject itself. */
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/** Reads what subjects say of themselves, from JSON, by the rules of weir.yaml. */
export function createSettingsReader({ plans, limits, routes }: Policy): (body: JsonObject) => ReadSettings {
  const subjectReader = new SubjectReader({ plans, limits, routes })

  /** Nearly all subjects have nothing but these, and reading YAML would take a hundred times as long. */
  const readPlain = ({ plan, timeZone = 'UTC', anchor = 1, ...rest }: JsonObject): SubjectSettings | undefined => {
    const known = typeof plan === 'string' ? plans.get(plan) : undefined
    if (known === undefined || typeof timeZone !== 'string' || typeof anchor !== 'number') return undefined
    const isWhole = Number.isInteger(anchor) && anchor >= 1 && anchor <= 31
    if (!isWhole || knownTimeZone(timeZone) === undefined) return undefined
    for (const _ in rest) return undefined
    return { plan: known, timeZone, anchor, ownLimits: noOwnLimits }
  }

  const readAll = (body: JsonObject): ReadSettings => {
    const reader = new TextReader('')
    const root = reader.open(JSON.stringify(body))
    const fields = root === undefined ? undefined : reader.fields(root, 'a subject', subjectKeys, ['plan'])
    const settings = fields === undefined ? undefined : subjectReader.read(reader, fields)
    if (settings !== undefined && reader.problems.length === 0) return { kind: 'settings', settings }
    return { kind: 'problems', problems: reader.problems.map(({ path, message }) => ({ path, message })) }
  }

  return function readSettings(body) {
    const settings = readPlain(body)
    return settings === undefined ? readAll(body) : { kind: 'settings', settings }
  }
}
