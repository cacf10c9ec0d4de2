import { expect, it } from 'vitest'
import { demoParts, type ServiceOptions, serviceParts } from './services.ts'

it('hands the demo webhook secret to alerting and to the receiver, and to nobody else', () => {
  const secrets = { demoKey: 'k', demoSmallKey: 's', adminToken: 't', webhookSecret: 'whsec_the_secret' }
  const ports = Object.fromEntries(
    ['ingress', 'api', 'grpc', 'console', 'upstream', 'receiver'].map((name) => [name, 1]),
  )
  const opsPorts = { ingress: 1, metering: 2, alerting: 3, console: 4 }
  const servers = { addresses: { redis: 'r', kafka: 'k', clickhouse: 'c' }, parts: [] }
  const options = { environment: {}, data: { dir: '/data', secrets }, ports, opsPorts, servers } as unknown
  const given = { ...(options as ServiceOptions), policyFile: 'p', watch: false }
  const holders = [...demoParts(given), ...serviceParts(given)].filter(({ env }) =>
    JSON.stringify(env).includes(secrets.webhookSecret),
  )
  expect(holders.map(({ name }) => name).sort()).toEqual(['alerting', 'receiver'])
})
