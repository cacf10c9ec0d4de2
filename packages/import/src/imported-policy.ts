import type { JsonObject } from '@weir/policy/entities.ts'
import { yamlOf } from '@weir/policy/state/policy-text.ts'
import type { ImportNote } from './envoy-config.ts'
import { spotName } from './foreign-file.ts'

/** An entry of the policy, with the place it comes from. */
export interface ImportedEntry {
  readonly origin: string
  readonly body: JsonObject
}

/** Limits by name and routes: what of a policy a configuration of `envoyproxy/ratelimit` becomes. */
export interface ImportedPolicy {
  readonly limits: ReadonlyMap<string, ImportedEntry>
  readonly routes: readonly ImportedEntry[]
}

/** The same with limits that count and report, and refuse nothing. */
export const inShadow = ({ limits, routes }: ImportedPolicy): ImportedPolicy => ({
  limits: new Map([...limits].map(([name, { origin, body }]) => [name, { origin, body: { ...body, mode: 'shadow' } }])),
  routes,
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
export function importedText({ limits, routes }: ImportedPolicy, notes: readonly ImportNote[]): string {
  const head = notes.length === 0 ? ['Everything could be carried over.'] : notes.map(formatImportNote)
  return [
    ...head.map(comment),
    'version: 1',
    ...section(
      'limits',
      [...limits].map(([name, entry]) => ({ ...entry, line: `${yamlOf(name)}: ${yamlOf(entry.body)}` })),
    ),
    ...section(
      'routes',
      routes.map((entry) => ({ ...entry, line: `- ${yamlOf(entry.body)}` })),
    ),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

const section = (name: string, entries: readonly (ImportedEntry & { readonly line: string })[]): readonly string[] =>
  entries.length === 0
    ? []
    : ['', `${name}:`, ...entries.flatMap(({ origin, line }) => [`  ${comment(origin)}`, `  ${line}`])]

/** A file's name may have what would end a comment. */
const comment = (text: string) => `# ${text.replaceAll(/[^\x20-\x7e\u00a0-\ud7ff]/g, '?')}`

/** The same as JSON's values. */
export const importedJson = ({ limits, routes }: ImportedPolicy) => ({
  version: 1,
  limits: Object.fromEntries([...limits].map(([name, { body }]) => [name, body])),
  routes: routes.map(({ body }) => body),
})
