import type { Reads } from './chart-files.ts'

/** What the templates set themselves: addresses and ports of containers, and where their volumes are. */
const setByChart =
  /^WEIR_(?:KAFKA_BROKERS|POLICY_FILE|POLICY_SNAPSHOT|JOURNAL_DIR|STATUS_URLS|SHARE_PORTS|CRASH_AT|CONSOLE_URL|\w+_HOST|\w+_PORT)$/

type Schema = Readonly<Record<string, unknown>>

/** A map with these keys and no others. */
const map = (properties: Readonly<Record<string, Schema>>, required?: readonly string[]): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...(required === undefined ? {} : { required }),
})
/** A map with any names of a kind. */
const named = (pattern: string, value: Schema): Schema => ({
  type: 'object',
  additionalProperties: false,
  patternProperties: { [pattern]: value },
})
const all = (names: readonly string[], value: Schema) => Object.fromEntries(names.map((name) => [name, value]))

const text: Schema = { type: 'string' }
const address: Schema = { type: 'string', pattern: '^https?://\\S+/$' }
const some: Schema = { type: 'string', minLength: 1 }
const flag: Schema = { type: 'boolean' }
const count = (minimum: number): Schema => ({ type: 'integer', minimum })
const labels: Schema = { type: 'object', additionalProperties: text }
const ofKubernetes = (type: 'object' | 'array'): Schema => ({ type })
const secretKey = map({ name: some, key: some }, ['name', 'key'])

/** The schema of values.yaml: it refuses names that the chart does not know, and variables that no service reads. */
export function valuesSchema(programs: Readonly<Record<string, Reads>>, secrets: ReadonlySet<string>): Schema {
  const readBy = (...names: string[]) => [
    ...new Set(names.flatMap((name) => programs[name]?.reads ?? []).filter((name) => !setByChart.test(name))),
  ]
  const env = (names: readonly string[]) =>
    map(
      all(
        names.filter((name) => !secrets.has(name)),
        text,
      ),
    )
  const kept = (names: readonly string[]) =>
    map(
      all(
        names.filter((name) => secrets.has(name)),
        secretKey,
      ),
    )
  const service = (name: string, more: Readonly<Record<string, Schema>> = {}) =>
    map({
      replicas: count(1),
      env: env(readBy(name)),
      // The policy names secrets of endpoints as it likes.
      secrets: name === 'alerting' ? named('^[A-Z][A-Z0-9_]*$', secretKey) : kept(readBy(name)),
      resources: ofKubernetes('object'),
      ...more,
    })
  const services = readBy('ingress', 'metering', 'alerting', 'console')
  const jobs = readBy('topics', 'migrate')
  const browsers = { enabled: flag, className: text, host: text, tlsSecret: text, annotations: labels }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...map(
      {
        global: ofKubernetes('object'),
        image: map({
          registry: some,
          tag: text,
          pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
          pullSecrets: { type: 'array', items: map({ name: some }, ['name']) },
        }),
        kafka: map({
          brokers: { type: 'string', pattern: '^[^\\s,/]+:\\d+(,[^\\s,/]+:\\d+)*$' },
          partitions: count(1),
        }),
        env: env(services),
        secrets: kept(services),
        files: named('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', some),
        policy: map({ text }),
        apply: map({ enabled: flag, token: map({ name: text, key: text }), consoleUrl: text }),
        jobs: map({ topics: flag, migrate: flag, env: env(jobs), secrets: kept(jobs) }),
        ingress: service('ingress', { journal: map({ size: some, storageClass: text }) }),
        drain: map({ enabled: flag, from: count(0) }),
        metering: service('metering'),
        alerting: service('alerting'),
        console: service('console', { ingress: map(browsers) }),
        networkPolicy: map({ enabled: flag, clients: ofKubernetes('array'), monitoring: labels }),
        monitoring: map({ serviceMonitor: flag, rules: flag, docs: address, dashboards: flag, labels }),
        nodeSelector: labels,
        tolerations: ofKubernetes('array'),
      },
      ['image', 'kafka'],
    ),
  }
}
