import { type EnvoyConfig, type EnvoyDescriptor, stepName } from './envoy-config.ts'
import { isOfEnvoy, markLate, readLateCharges } from './envoy-late-charges.ts'
import { limitsOfRules } from './envoy-limits.ts'
import { rulesBelow, rulesMax } from './envoy-rules.ts'
import { type ImportProblem, type Spot, spotName } from './foreign-file.ts'
import type { ImportResult, InputFile } from './imported-policy.ts'
import { Notes } from './notes.ts'
import { readEnvoyConfig } from './read-envoy-config.ts'
import { openYaml } from './yaml-config.ts'

/**
 * Converts configuration files of `envoyproxy/ratelimit` to limits and routes that decide the same. Files of one
 * domain are read as one, as the server does with MERGE_DOMAIN_CONFIG; a ConfigMap is the files that it has. Whatever
 * it cannot say the same way has a note; a file that the server would not load is a problem, and then nothing is
 * converted. A configuration of Envoy itself among them says which descriptors it charges at the end of a stream.
 */
export function importEnvoy(files: readonly InputFile[]): ImportResult {
  const notes = new Notes()
  const opened = openYaml(files)
  const ofEnvoy = opened.filter(isOfEnvoy)
  const late = ofEnvoy.flatMap(readLateCharges)
  const configs = opened.flatMap((one) => (isOfEnvoy(one) ? [] : (readEnvoyConfig(one, notes) ?? [])))
  if (ofEnvoy.length === opened.length) for (const { documents } of ofEnvoy) documents[0]?.problem(noLimits)
  const problems = opened.flatMap(({ file }) => file.problems)
  const domains = Map.groupBy(configs, ({ domain }) => domain)
  if (problems.length === 0) for (const [domain, parts] of domains) problems.push(...twiceIn(allOf(parts), domain))
  if (problems.length > 0) return { kind: 'problems', problems }
  const rules = [...domains].map(([domain, parts]) => ({ domain, rules: rulesBelow(allOf(parts), notes) }))
  const count = rules.reduce((sum, one) => sum + one.rules.length, 0)
  const [first] = configs
  if (count > rulesMax && first !== undefined) {
    const message = `becomes more than ${rulesMax} routes, the most that a policy has; import fewer domains at once`
    return { kind: 'problems', problems: [{ file: first.file, line: first.line, message }] }
  }
  for (const [domain, [one, ...others]] of domains) for (const other of others) noteMerging(notes, domain, one, other)
  const policy = limitsOfRules(markLate(rules, late, notes), notes)
  return { kind: 'imported', policy, notes: notes.inOrderOf(files) }
}

const noLimits = 'is a configuration of Envoy itself; name that of envoyproxy/ratelimit too, which has the limits'

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

function noteMerging(notes: Notes, domain: string, first: Spot | undefined, other: Spot): void {
  const what = `domain ${domain} is in ${first?.file ?? ''} too; both are one, as with MERGE_DOMAIN_CONFIG=true`
  notes.info(other, what, 'Nothing, if that server sets it; otherwise it rejects these files.')
}
