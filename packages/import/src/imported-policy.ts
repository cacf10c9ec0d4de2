import type { JsonObject } from '@weir/policy/entities.ts'
import { yamlOf } from '@weir/policy/state/policy-text.ts'
import { type ImportProblem, type Spot, spotName } from './foreign-file.ts'

/** A file to import. */
export interface InputFile {
  readonly name: string
  readonly text: string
}

/** Something of a configuration that a person should know about. */
export interface ImportNote extends Spot {
  /** `lost`: it is not in the policy. `changed`: it is, and means something else. `info`: it means the same. */
  readonly kind: 'lost' | 'changed' | 'info'
  readonly what: string
  /** What to do about it. */
  readonly advice: string
}

/** An entry of the policy, with the place it comes from. */
export interface ImportedEntry {
  readonly origin: string
  readonly body: JsonObject
}

/** The parts of a policy that another program's configuration becomes. */
export interface ImportedPolicy {
  readonly limits: ReadonlyMap<string, ImportedEntry>
  readonly routes: readonly ImportedEntry[]
  /** Sections that say who may call, for configurations that admit callers without a key. */
  readonly callers?: JsonObject
}

/** The result of an import: a policy with notes, or every problem of the files. */
export type ImportResult =
  | { readonly kind: 'imported'; readonly policy: ImportedPolicy; readonly notes: readonly ImportNote[] }
  | { readonly kind: 'problems'; readonly problems: readonly ImportProblem[] }

/** The same with limits that count and report, and refuse nothing. */
export const inShadow = ({ limits, ...rest }: ImportedPolicy): ImportedPolicy => ({
  ...rest,
  limits: new Map([...limits].map(([name, { origin, body }]) => [name, { origin, body: shadowOf(body) }])),
})

const shadowOf = (body: JsonObject): JsonObject => ({
  ...Object.fromEntries(Object.entries(body).filter(([key]) => key !== 'onExceed')),
  mode: 'shadow',
})

/** A note on one line, for people. */
export const formatImportNote = (note: ImportNote): string =>
  `${spotName(note)}  ${titles[note.kind]}: ${note.what}. ${note.advice}`

const titles: Readonly<Record<ImportNote['kind'], string>> = {
  lost: 'not carried over',
  changed: 'carried over otherwise',
  info: 'to know',
}

/** The policy as a weir.yaml that says where each entry comes from, with the notes at its head. */
export function importedText({ limits, routes, callers = {} }: ImportedPolicy, notes: readonly ImportNote[]): string {
  const head = notes.length === 0 ? ['Everything was converted.'] : notes.map(formatImportNote)
  const ofLimits = [...limits].map(([name, entry]) => ({ ...entry, line: `${yamlOf(name)}: ${yamlOf(entry.body)}` }))
  const ofRoutes = routes.map((entry) => ({ ...entry, line: `- ${yamlOf(entry.body)}` }))
  const ofCallers = Object.entries(callers).map(([name, value]) => `${name}: ${yamlOf(value)}`)
  const sections = [...ofCallers, ...section('limits', ofLimits), ...section('routes', ofRoutes)]
  return [...head.map(comment), 'version: 1', ...sections, ''].join('\n')
}

const section = (name: string, entries: readonly (ImportedEntry & { readonly line: string })[]): readonly string[] =>
  entries.length === 0
    ? []
    : ['', `${name}:`, ...entries.flatMap(({ origin, line }) => [`  ${comment(origin)}`, `  ${line}`])]

/** A file's name may have what would end a comment. */
const comment = (text: string) => `# ${text.replaceAll(/[^\x20-\x7e\u00a0-\ud7ff]/g, '?')}`

/** The same as JSON's values. */
export const importedJson = ({ limits, routes, callers }: ImportedPolicy) => ({
  version: 1,
  ...callers,
  limits: Object.fromEntries([...limits].map(([name, { body }]) => [name, body])),
  routes: routes.map(({ body }) => body),
})
