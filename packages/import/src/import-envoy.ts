import { yamlOf } from '@weir/policy/state/policy-text.ts'
import { type EnvoyConfig, type EnvoyDescriptor, type ImportNote, stepName } from './envoy-config.ts'
import { type ImportedEntry, type ImportedPolicy, limitsOfRules } from './envoy-limits.ts'
import { rulesBelow, rulesMax } from './envoy-rules.ts'
import { type ImportProblem, type Spot, spotName } from './foreign-file.ts'
import { readEnvoyConfig } from './read-envoy-config.ts'

/** The result of an import: a policy with notes, or every problem of the files. */
export type EnvoyImport =
  | { readonly kind: 'imported'; readonly policy: ImportedPolicy; readonly notes: readonly ImportNote[] }
  | { readonly kind: 'problems'; readonly problems: readonly ImportProblem[] }

/**
 * Converts configuration files of `envoyproxy/ratelimit` to limits and routes that decide the same. Files of one
 * domain are read as one, as the server does with MERGE_DOMAIN_CONFIG. Whatever it cannot say the same way has a note;
 * a file that the server would not load is a problem, and then nothing is converted.
 */
export function importEnvoy(files: readonly { readonly name: string; readonly text: string }[]): EnvoyImport {
  const read = files.map(({ name, text }) => readEnvoyConfig(text, name))
  const notes = read.flatMap((one) => one.notes)
  const configs = read.flatMap(({ config }) => config ?? [])
  const problems = read.flatMap((one) => one.problems)
  const domains = Map.groupBy(configs, ({ domain }) => domain)
  for (const [domain, parts] of domains) problems.push(...twiceIn(allOf(parts), domain))
  if (problems.length > 0) return { kind: 'problems', problems }
  const rules = [...domains].map(([domain, parts]) => ({ domain, rules: rulesBelow(allOf(parts), notes) }))
  const count = rules.reduce((sum, one) => sum + one.rules.length, 0)
  const [first] = configs
  if (count > rulesMax && first !== undefined) {
    const message = `becomes more than ${rulesMax} routes, the most that a policy has; import fewer domains at once`
    return { kind: 'problems', problems: [{ file: first.file, line: first.line, message }] }
  }
  for (const [domain, parts] of domains) notes.push(...notesOnMerging(domain, parts))
  const policy = limitsOfRules(rules, notes)
  return { kind: 'imported', policy, notes: inOrderOf(files, notes) }
}

/** By file and line. */
function inOrderOf<T extends Spot>(files: readonly { readonly name: string }[], spots: readonly T[]): readonly T[] {
  const places = new Map(files.map(({ name }, at) => [name, at]))
  const placeOf = ({ file }: Spot) => places.get(file) ?? 0
  return spots.toSorted((a, b) => placeOf(a) - placeOf(b) || a.line - b.line)
}

const allOf = (parts: readonly EnvoyConfig[]) => parts.flatMap(({ descriptors }) => descriptors)

/** Descriptors that the server takes for the same one. */
function twiceIn(descriptors: readonly EnvoyDescriptor[], path: string): ImportProblem[] {
  const first = new Map<string, EnvoyDescriptor>()
  return descriptors.flatMap((one) => {
    const known = first.get(stepName(one))
    const own = `${path} ${stepName(one)}`
    if (known !== undefined) {
      return [{ file: one.file, line: one.line, message: `${own} is there twice, first at ${spotName(known)}` }]
    }
    first.set(stepName(one), one)
    return twiceIn(one.descriptors, own)
  })
}

function notesOnMerging(domain: string, parts: readonly EnvoyConfig[]): ImportNote[] {
  return parts.slice(1).map(({ file, line }) => ({
    ...{ file, line, kind: 'info' },
    what: `domain ${domain} is in ${parts[0]?.file ?? ''} too; both are one, as with MERGE_DOMAIN_CONFIG=true`,
    advice: 'Nothing, if that server has it set; else it refuses these files.',
  }))
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
