import { type EnvoyDescriptor, stepName } from './envoy-config.ts'
import type { Rule, Step } from './envoy-rules.ts'
import { isEmpty, type Spot } from './foreign-file.ts'
import type { Notes } from './notes.ts'
import { Entry, type YamlFile } from './yaml-config.ts'

/** A descriptor that Envoy reports once a response has ended. */
interface LateDescriptor extends Spot {
  /** An empty value is known only at the request. */
  readonly entries: readonly Pick<EnvoyDescriptor, 'key' | 'value'>[]
  /** The domains that its file names; empty for a file without the filter. */
  readonly domains: readonly string[]
}

/** Rules of one domain. */
interface DomainRules {
  readonly domain: string
  readonly rules: readonly Rule[]
}

/** A bootstrap, a route configuration, a file of either for its watcher, or what `/config_dump` answers. */
const ownField = /^(?:static_resources|virtual_hosts|resources|configs)$/

/** Keys of actions that name none; of all others it is the name of the action. */
const keys: Readonly<Record<string, string>> = {
  header_value_match: 'header_match',
  query_parameter_value_match: 'query_match',
}

/** Whether it is a configuration of Envoy itself, which says what is charged late, not of its rate limit service. */
export const isOfEnvoy = ({ documents: [root] }: YamlFile): boolean =>
  root?.isMap === true && [...root.fields.keys()].some((name) => ownField.test(name))

/** Returns what a configuration of Envoy charges at the end of a stream. */
export function readLateCharges({ file }: YamlFile): readonly LateDescriptor[] {
  const domains: string[] = []
  const late: LateDescriptor[] = []
  file.eachField((name, value) => {
    if (name === 'domain') domains.push(new Entry(file, value).asText(name))
    if (name !== 'rate_limits' || isEmpty(value)) return
    for (const item of file.list(value, 'a list of rate limits') ?? []) {
      const limit = new Entry(file, item, 'a rate limit: a map with `actions`')
      if (!limit.flag('apply_on_stream_done')) continue
      late.push({ file: limit.file, line: limit.line, domains, entries: limit.items('actions').map(entryOf) })
    }
  })
  return late
}

function entryOf(action: Entry): Pick<EnvoyDescriptor, 'key' | 'value'> {
  const [[type, settings] = ['', action]] = action.entries()
  const value = settings.text('descriptor_value')
  return { key: settings.text('descriptor_key') || (keys[type] ?? type), value: value.includes('%') ? '' : value }
}

/** Marks the rules that are charged late; a note for each descriptor that meets none. */
export function markLate(
  domains: readonly DomainRules[],
  late: readonly LateDescriptor[],
  notes: Notes,
): readonly DomainRules[] {
  const met = new Set<LateDescriptor>()
  const marked = domains.map(({ domain, rules }) => ({
    domain,
    rules: rules.map((rule) => {
      const meeting = late.filter((one) => meets(one, domain, rule.steps))
      for (const one of meeting) met.add(one)
      return { ...rule, isLate: meeting.length > 0 }
    }),
  }))
  for (const one of late) {
    const what = `no imported limit has the descriptor ${one.entries.map(stepName).join(', ')}, which Envoy charges at the end of a stream`
    if (!met.has(one)) notes.lost(one, what, 'Import the configuration that limits it too, if there is one.')
  }
  return marked
}

const meets = ({ domains, entries }: LateDescriptor, domain: string, steps: readonly Step[]) =>
  (domains.length === 0 || domains.includes(domain)) &&
  steps.length === entries.length &&
  entries.every(({ key, value }, at) => {
    const step = steps[at]
    if (step?.key !== key) return false
    if (value === '' || step.match === 'any') return true
    return step.match === 'exact' ? value === step.text : value.startsWith(step.text)
  })
