import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { images } from '../support/servers/start-container.ts'
import { environmentProblems } from './environment-problems.ts'
import { compose, composeFile, composeServices, valueWithout, waitsFor } from './read-compose.ts'
import { readConfigs } from './read-configs.ts'
import { textOf, tree } from './read-tree.ts'

const servers = [redisServer, kafkaServer, clickhouseServer]
const configs = await readConfigs()
const paths = new Set(tree.map(({ path }) => path))
const main = textOf('packages/cli/src/main.ts')

/** Commands of `./weir` that work on one server and end, with the variable that each must be given. */
const once = new Map(
  [...main.matchAll(/program\s*\.command\('(\w+)'\)\s*\.description\('[^']* \((WEIR_\w+)\)/g)].map((match) => [
    match[1],
    match[2],
  ]),
)

/** Those that a running service needs beside a server: they end too. */
const afterConsole = ['apply']
/** Those of the profile `monitoring`, which no other part waits for. */
const monitoring = ['prometheus', 'grafana']
const ends = (name: string) => once.has(name) || afterConsole.includes(name)

const policy = parsePolicy(textOf('weir.yaml'), 'weir.yaml')
const secretNames: readonly string[] =
  policy.kind === 'policy'
    ? [...policy.policy.endpoints.values()].flatMap((one) => (one.type === 'webhook' ? (one.secretEnv ?? []) : []))
    : []

test('has the three servers, the commands that prepare them, every service, and monitoring', () => {
  const wanted = [
    ...servers.map(({ name }) => name),
    ...once.keys(),
    ...afterConsole,
    ...configs.map(({ service }) => service),
    ...monitoring,
  ]
  expect(Object.keys(compose.services).toSorted()).toEqual(wanted.toSorted())
})

test.each(servers)(
  '$name is the same version here, in the containers of the tests and where the launcher offers it',
  (server) => {
    const { image } = compose.services[server.name] ?? {}
    expect(image).toBe(images[server.name])
    expect(server.docker.command.split(' ')).toContain(image)
  },
)

test('Kafka in a container is the version whose jars run without one', () => {
  const [, version] = /:kafka_[\d.]+:([\d.]+)$/m.exec(textOf('infra/local/kafka/jars.sha256')) ?? []
  expect(images.kafka).toBe(`apache/kafka:${version}`)
})

describe.each(configs)('$service', ({ service, variables }) => {
  const { environment = {}, ports = [], build } = compose.services[service] ?? {}
  const declared = Object.values(variables)
  const set = (name: string) => valueWithout(environment[name] ?? '')

  test('is given variables that it reads, all that it must have, and values that it accepts', () => {
    const given = new Map(Object.keys(environment).map((name) => [name, set(name).value]))
    expect(environmentProblems(given, variables, service === 'alerting' ? secretNames : [])).toEqual([])
  })

  test('listens on its usual ports, on all addresses of the container and on loopback of the host', () => {
    const named = (ending: string) => declared.filter(({ name }) => name.endsWith(ending))
    expect(named('_HOST').map(({ name }) => set(name).value)).toEqual(named('_HOST').map(() => '0.0.0.0'))
    const usual = named('_PORT').map(({ fallback }) => `127.0.0.1:${fallback}:${fallback}`)
    expect(ports.toSorted()).toEqual(usual.toSorted())
    const given = named('_PORT').filter(({ name, fallback }) => name in environment && set(name).value !== fallback)
    expect(given).toEqual([])
    // The image's own health check asks there.
    expect(environment).toHaveProperty('WEIR_OPS_PORT')
  })

  test('is built from its own folder', () => {
    expect(build?.args).toEqual({ SERVICE: service })
    expect(paths).toContain(`services/${service}/src/main.ts`)
  })
})

test.each([...once])('%s runs the command of that name on a server that is up', (command = '', variable = '') => {
  const { environment = {}, build, command: line } = compose.services[command] ?? {}
  expect(build?.args).toEqual({ SERVICE: 'cli' })
  expect(line?.at(-1)).toBe(command)
  expect(Object.keys(environment)).toEqual([variable])
})

test('apply finds the console, its token and the policy, and leaves alone what was applied already', () => {
  const { environment = {}, build, command, volumes } = compose.services.apply ?? {}
  expect([build?.args, command?.slice(-3)]).toEqual([{ SERVICE: 'cli' }, ['apply', '--if-changed', '--yes']])
  expect(Object.keys(environment)).toEqual(['WEIR_CONSOLE_URL', 'WEIR_ADMIN_TOKEN', 'WEIR_POLICY_FILE'])
  expect(volumes?.[0]).toContain(`:${environment.WEIR_POLICY_FILE}:`)
  expect(waitsFor('ingress')).toContain('apply')
})

test('every image of ours is built from a file that is there and takes the service as its argument', () => {
  const files = composeServices.flatMap(([, { build }]) => build?.dockerfile ?? [])
  expect([...new Set(files)].filter((file) => !paths.has(file))).toEqual([])
  for (const file of new Set(files)) expect(textOf(file)).toMatch(/^ARG SERVICE$/m)
})

test('addresses name services that are awaited, at ports where they listen', () => {
  const ports: Record<string, string> = { redis: '6379', kafka: '9092', clickhouse: '8123', console: '8090' }
  for (const [name, { environment = {} }] of composeServices.filter(([, { build }]) => build !== undefined)) {
    const values = Object.entries(environment).filter(([variable]) => /_(?:URL|BROKERS)$/.test(variable))
    for (const [, value] of values) {
      const [, host = '', port] = /^(?:\w+:\/\/)?([\w-]+):(\d+)$/.exec(String(value)) ?? []
      expect(port).toBe(ports[host])
      expect(waitsFor(name)).toContain(host)
    }
  }
})

test('a service waits until servers are healthy and one-shot commands have succeeded', () => {
  for (const [, { depends_on = {} }] of composeServices) {
    for (const [name, { condition }] of Object.entries(depends_on)) {
      const { healthcheck, restart } = compose.services[name] ?? {}
      expect([name, condition]).toEqual([name, ends(name) ? 'service_completed_successfully' : 'service_healthy'])
      if (ends(name)) expect([name, restart]).toEqual([name, undefined])
      else expect(healthcheck?.test?.length).toBeGreaterThan(1)
    }
  }
})

test('nothing listens beyond loopback, and no secret is written down', () => {
  const ports = composeServices.flatMap(([, { ports = [] }]) => ports)
  expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
  const secrets = composeServices
    .flatMap(([, { environment = {} }]) => Object.entries(environment))
    .filter(([name]) => /SECRET|TOKEN|PASSWORD/.test(name))
  expect(secrets.length).toBeGreaterThan(0)
  expect(secrets.filter(([, value]) => !/^\$\{[A-Z0-9_]+(?::-\}|:\?.+\})$/.test(String(value)))).toEqual([])
  expect(textOf(composeFile)).not.toMatch(/whsec_|Bearer |:\/\/[^\s/@]+:[^\s/@]+@/)
})

test('data lies in volumes that are declared, and none is declared for nothing', () => {
  const used = composeServices
    .flatMap(([, { volumes = [] }]) => volumes)
    .map((volume) => volume.split(':')[0] ?? '')
    .filter((name) => /^[\w-]+$/.test(name))
  expect(used.toSorted()).toEqual(Object.keys(compose.volumes).toSorted())
})

test('Redis keeps what it counts, and never evicts it', () => {
  const line = compose.services.redis?.command?.join(' ')
  for (const setting of ['--appendonly yes', '--appendfsync everysec', '--maxmemory-policy noeviction']) {
    expect(line).toContain(setting)
  }
})

test('Kafka tells clients inside and outside the address by which they reach it', () => {
  const { environment = {}, ports = [] } = compose.services.kafka ?? {}
  const advertised = String(environment.KAFKA_ADVERTISED_LISTENERS).split(',')
  const outside = ports.map((port) => port.split(':')[1])
  expect(advertised).toEqual(['INSIDE://kafka:9092', `HOST://127.0.0.1:${outside[0]}`])
  expect(environment.KAFKA_AUTO_CREATE_TOPICS_ENABLE).toBe('false')
})

test('monitoring starts only when asked for, and scrapes every service where it listens', () => {
  const withProfile = composeServices.filter(([, { profiles }]) => profiles !== undefined)
  expect(withProfile.map(([name, { profiles }]) => [name, profiles])).toEqual(
    monitoring.map((name) => [name, ['monitoring']]),
  )
  const targets: { targets: string[]; labels: { job: string } }[] = parse(
    textOf('infra/prometheus/targets.compose.yml'),
  )
  const opsPort = (service: string) => compose.services[service]?.environment?.WEIR_OPS_PORT
  expect(targets).toEqual(
    configs.map(({ service }) => ({ targets: [`${service}:${opsPort(service)}`], labels: { job: `weir-${service}` } })),
  )
  const local: typeof targets = parse(textOf('infra/prometheus/targets.yml'))
  expect(local).toEqual(targets.map((one) => ({ ...one, targets: [one.targets[0]?.replace(/^\w+/, '127.0.0.1')] })))
})
