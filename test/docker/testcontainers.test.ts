import { Redis } from 'ioredis'
import { Kafka, logLevel } from 'kafkajs'
import { afterAll, expect, inject, test } from 'vitest'
import { startContainer } from '../support/servers/start-container.ts'

// Testcontainers reads them when it is first asked. What removes containers of a killed test is an image of a registry.
process.env.DOCKER_HOST = inject('dockerEnvironment').DOCKER_HOST
process.env.TESTCONTAINERS_RYUK_DISABLED = 'true'

const opened: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(opened.map((one) => one.close())))

const asks = {
  redis: async (address: string) => {
    const client = new Redis(address)
    const answer = await client.ping()
    client.disconnect()
    return answer
  },
  kafka: async (address: string) => {
    const admin = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const { brokers } = await admin.describeCluster()
    await admin.disconnect()
    return brokers.length
  },
  clickhouse: async (address: string) => (await fetch(`${address}/?query=SELECT+41%2B1`)).text(),
}

test.each([
  ['redis', 'PONG'],
  ['kafka', 1],
  ['clickhouse', '42\n'],
] as const)('the tests’ %s starts in a container where no program of the machine has it', async (name, answer) => {
  const server = await startContainer(name)
  if (server !== undefined) opened.push(server)
  expect(await asks[name](server?.address ?? 'none')).toBe(answer)
})
