import { describe, expect, test } from 'vitest'
import { images } from '../support/servers/start-container.ts'
import { compose, readCompose, valueWithout, waitsFor } from './read-compose.ts'
import { readConfigs } from './read-configs.ts'
import { textOf } from './read-tree.ts'

const folder = 'infra/examples/ha'
const file = readCompose(`${folder}/docker-compose.yml`)
const services = Object.entries(file.services)
const configs = await readConfigs()

const namesOf = (prefix: string) => services.flatMap(([name]) => (name.startsWith(`${prefix}-`) ? [name] : []))
const environmentOf = (name: string) => file.services[name]?.environment ?? {}
const propertiesOf = (text: string) =>
  Object.fromEntries(text.split('\n').flatMap((line) => (/^[^#=]+=/.test(line) ? [line.split(/=(.*)/, 2)] : [])))

test('has three brokers, six nodes of a Cluster and two of each service', () => {
  const counts = ['kafka', 'redis', ...configs.map(({ service }) => service)].map((name) => namesOf(name).length)
  expect(counts).toEqual([3, 6, 2, 2, 2, 2])
})

describe.each(configs)('$service', ({ service, variables }) => {
  test('is as docker-compose.yml has it, but for addresses of Redis and Kafka, and both are alike', () => {
    const others = { WEIR_REDIS_URL: '', WEIR_KAFKA_BROKERS: '' }
    const [first = '', second = ''] = namesOf(service)
    expect({ ...environmentOf(first), ...others }).toEqual({ ...compose.services[service]?.environment, ...others })
    expect(environmentOf(second)).toEqual(environmentOf(first))
    expect(file.services[first]?.build?.args).toEqual({ SERVICE: service })
  })

  test('accepts the addresses, which name all that is there and awaited', () => {
    for (const name of namesOf(service)) {
      for (const { name: variable, parse } of Object.values(variables)) {
        const value = environmentOf(name)[variable]
        if (value !== undefined && !valueWithout(value).mustBeGiven) {
          expect([variable, 'value' in parse(valueWithout(value).value)]).toEqual([variable, true])
        }
      }
      const brokers = String(environmentOf(name).WEIR_KAFKA_BROKERS).split(',')
      expect(brokers).toEqual(namesOf('kafka').map((one) => `${one}:9092`))
      for (const one of [...namesOf('kafka'), ...namesOf('redis')]) expect(waitsFor(name, file)).toContain(one)
    }
  })
})

test('every address of a Redis is that of a node, in services and in the command that makes the Cluster', () => {
  const nodes = namesOf('redis').map((name) => file.services[name]?.networks?.default.ipv4_address)
  const hosts = nodes.map((address) => `${address}:6379`)
  expect(new Set(nodes).size).toBe(6)
  expect(environmentOf('ingress-1').WEIR_REDIS_URL).toBe(`redis+cluster://${hosts}`)
  const made = file.services.cluster?.command?.at(-1) ?? ''
  expect(made).toContain(`--cluster create ${hosts.join(' ')} --cluster-replicas 1`)
})

test('brokers differ only in what names them, and have the settings of server.properties', () => {
  const plain: Record<string, string> = propertiesOf(textOf(`${folder}/server.properties`))
  namesOf('kafka').forEach((name, index) => {
    const zone = index + 1
    const settings = Object.entries(environmentOf(name)).flatMap(([variable, value]) =>
      variable === 'CLUSTER_ID'
        ? []
        : [[variable.slice('KAFKA_'.length).toLowerCase().replaceAll('_', '.'), String(value)]],
    )
    const own = {
      'node.id': String(zone),
      'advertised.listeners': `INSIDE://${name}:9092`,
      'broker.rack': `zone-${zone}`,
    }
    expect(Object.fromEntries(settings)).toEqual({ ...plain, ...own })
  })
})

test('images are those of docker-compose.yml', () => {
  const ours = services.flatMap(([, { image, build }]) => (build === undefined ? [image] : []))
  expect([...new Set(ours)].toSorted()).toEqual(Object.values(images).toSorted())
})

test('data lies in volumes that are declared, one for each node and each journal, and nothing listens beyond loopback', () => {
  const used = services
    .flatMap(([, { volumes = [] }]) => volumes)
    .map((volume) => volume.split(':')[0] ?? '')
    .filter((name) => /^[\w-]+$/.test(name))
  expect(used.toSorted()).toEqual(Object.keys(file.volumes).toSorted())
  const ports = services.flatMap(([, { ports = [] }]) => ports)
  expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
  const hostPorts = ports.map((port) => port.split(':')[1])
  expect(new Set(hostPorts).size).toBe(hostPorts.length)
})
