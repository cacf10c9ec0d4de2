import { readFile } from 'node:fs/promises'
import { kafkajs } from '@weir/kafka/wire/kafkajs-fixes.ts'
import type { KafkaConfig } from 'kafkajs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccessRight } from '../../support/servers/access-right.ts'
import { type SecureKafka, startSecureKafka, unsecuredToken } from '../../support/servers/secure-kafka.ts'

let kafka: SecureKafka
beforeAll(async () => {
  kafka = await startSecureKafka({ plainUsers: { plain: 'plain password' } })
  await kafka.admin.createTopics({ topics: [{ topic: 'seen' }, { topic: 'hidden' }] })
  await kafka.setPassword('reader', 'first')
})
afterAll(() => kafka?.close())

const describe: AccessRight = { resource: 'Topic', name: 'seen', operation: 'Describe' }

async function topicsOf(config: KafkaConfig): Promise<string[]> {
  const admin = new kafkajs.Kafka({ logLevel: kafkajs.logLevel.NOTHING, retry: { retries: 0 }, ...config }).admin()
  try {
    await admin.connect()
    return await admin.listTopics()
  } finally {
    await admin.disconnect()
  }
}

test('Each mechanism admits its user, who sees the granted topics and no others', async () => {
  const bearer: KafkaConfig = {
    ...kafka.asUser('bearer', ''),
    sasl: { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: unsecuredToken('bearer') }) },
  }
  const { certFile, keyFile } = await kafka.authority.issue('certified')
  const [ca, cert, key] = await Promise.all([kafka.caFile, certFile, keyFile].map((file) => readFile(file, 'utf8')))
  const users: Record<string, KafkaConfig[]> = {
    reader: [kafka.asUser('reader', 'first', 'scram-sha-256'), kafka.asUser('reader', 'first', 'scram-sha-512')],
    plain: [kafka.asUser('plain', 'plain password', 'plain')],
    bearer: [bearer],
    certified: [{ brokers: [kafka.tlsAddress], ssl: { ca, cert, key } }],
  }
  for (const [user, configs] of Object.entries(users)) {
    for (const config of configs) expect(await topicsOf(config), user).toEqual([])
    await kafka.grant(user, [describe])
    for (const config of configs) expect(await topicsOf(config), user).toEqual(['seen'])
    await kafka.revoke(user, [describe])
    for (const config of configs) expect(await topicsOf(config), user).toEqual([])
  }
})

test('A changed password counts from then on, and a client without a known certificate is refused', async () => {
  await kafka.setPassword('reader', 'second')
  await expect(topicsOf(kafka.asUser('reader', 'first'))).rejects.toThrow(/Authentication failed/)
  expect(await topicsOf(kafka.asUser('reader', 'second'))).toEqual([])
  const otherCa = await readFile(kafka.otherCaFile, 'utf8')
  await expect(topicsOf({ ...kafka.asUser('reader', 'second'), ssl: { ca: otherCa } })).rejects.toThrow(/certificate/)
  const ca = await readFile(kafka.caFile, 'utf8')
  await expect(topicsOf({ brokers: [kafka.tlsAddress], ssl: { ca } })).rejects.toThrow()
  await expect(topicsOf({ brokers: [kafka.address] })).rejects.toThrow()
})

test('Rights and passwords outlive a kill, and are changed after it as before', async () => {
  await kafka.grant('reader', [describe])
  await kafka.kill('SIGKILL')
  await kafka.restart()
  await kafka.setPassword('reader', 'third')
  expect(await topicsOf(kafka.asUser('reader', 'third'))).toEqual(['seen'])
  await kafka.revoke('reader', [describe])
  expect(await topicsOf(kafka.asUser('reader', 'third'))).toEqual([])
})
