import { expect, it } from 'vitest'
import { demoProcess, type ServiceOptions, serviceProcesses } from './services.ts'

it('Each secret is handed to the processes that use it, and to no other', () => {
  const secrets = {
    demoKey: 'k',
    demoSmallKey: 's',
    adminToken: 't',
    webhookSecret: 'whsec_the_secret',
    portalKey: 'the_portal_key',
  }
  const ports = Object.fromEntries(
    ['ingress', 'api', 'grpc', 'console', 'upstream', 'receiver'].map((name) => [name, 1]),
  )
  const opsPorts = { ingress: 1, metering: 2, alerting: 3, console: 4 }
  const servers = {
    addresses: { redis: 'redis://:r@', kafka: 'k', clickhouse: 'http://c:c@' },
    kafkaVariables: {},
    processes: [],
  }
  const options = { environment: {}, data: { dir: '/data', secrets }, ports, opsPorts, servers } as unknown
  const given = { ...(options as ServiceOptions), policyFile: 'p', watch: false }
  const holders = (secret: string) =>
    [demoProcess(given), ...serviceProcesses(given)]
      .filter(({ env }) => JSON.stringify(env).includes(secret))
      .map(({ name }) => name)
      .sort()
  expect(holders(secrets.webhookSecret)).toEqual(['alerting', 'demo'])
  expect(holders(secrets.portalKey)).toEqual(['console'])
  expect(holders('redis://:r@')).toEqual(['alerting', 'console', 'ingress'])
  expect(holders('http://c:c@')).toEqual(['alerting', 'console', 'metering'])
})
