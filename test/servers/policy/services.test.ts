import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { deleteEntity, putEntity } from '@weir/policy/entities.ts'
import { createPolicyWriter } from '@weir/policy-feed/policy-writer.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { folderForTest, forFile, forTest } from '../../support/opened.ts'
import { changesOf, openWriter, policyOfSize, wholeChange } from '../../support/policy-topic.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { startServiceProcess } from '../../support/service-process.ts'
import { startIngress } from '../../support/start-ingress.ts'
import { until } from '../../support/until.ts'

const kafka = await forFile(startServer(kafkaServer))
await ensureTopics(kafkaOptions(kafka.address), await readTopics())
const writer = createPolicyWriter(kafkaOptions(kafka.address))
await writer.publish(wholeChange(changesOf(policyOfSize(1_000))))
await writer.close()

const apiKey = 'weir_a-key-that-comes-and-goes'
const keyChange = putEntity({
  kind: 'key',
  name: sha256(apiKey),
  origin: 'admin',
  position: undefined,
  body: { subject: 'acme', id: 'k' },
})

async function start(environment: Readonly<Record<string, string>>) {
  const ingress = await forTest(
    startIngress({
      WEIR_REDIS_URL: inject('redisUrl'),
      WEIR_KAFKA_BROKERS: kafka.address,
      WEIR_POLICY_FILE: '/nowhere/weir.yaml',
      ...environment,
    }),
  )
  return {
    ...ingress,
    async ask() {
      const answer = await fetch(`${ingress.api}/v1/authorize/`, { headers: { 'x-api-key': apiKey } })
      await answer.body?.cancel()
      return answer
    },
    async readiness() {
      const answer = await fetch(`${ingress.ops}/readyz`)
      return `${answer.status} ${await answer.text()}`
    },
  }
}

test('alerting takes over an endpoint without a secret with a warning, and lives', async () => {
  const alerting = await startServiceProcess('alerting', {
    WEIR_REDIS_URL: inject('redisUrl'),
    WEIR_KAFKA_BROKERS: kafka.address,
    WEIR_CLICKHOUSE_URL: inject('clickhouseUrl'),
    WEIR_POLICY_FILE: '/nowhere/weir.yaml',
  })
  onTestFinished(() => alerting.kill('SIGKILL'))
  const readiness = async () => {
    const { status, text } = await alerting.ready()
    return `${status} ${text}`
  }
  const takesAll = async () => /^200 (?![\s\S]*endpoints:)/.test(await readiness()) // the tables are another matter
  await until(takesAll)
  const writer = openWriter(kafkaOptions(kafka.address), topics.policy)
  const endpoint = { kind: 'endpoint', name: 'ops', origin: 'admin', position: undefined } as const
  const body = { url: 'https://hooks.example.com/', secretEnv: 'OPS_SECRET' }
  await writer.publish(wholeChange([putEntity({ ...endpoint, body })]))
  await until(async () => (await readiness()).includes('endpoints: warning: OPS_SECRET (endpoint ops)'))
  expect(await readiness()).toMatch(/^200 /)
  await writer.publish(wholeChange([deleteEntity('endpoint', 'ops')]))
  await until(takesAll)
})

test('without Kafka an ingress starts by its snapshot; a stale policy refuses with 503, at the door and in /readyz, until Kafka is back', async () => {
  const snapshot = { WEIR_POLICY_SNAPSHOT: join(await folderForTest('policy'), 'policy.snapshot') }
  const writer = openWriter(kafkaOptions(kafka.address), topics.policy)
  await writer.publish(wholeChange([keyChange]))
  const before = await start(snapshot)
  expect((await before.ask()).status).toBe(200)
  await before.close()
  await kafka.kill('SIGKILL')
  const rule = { WEIR_POLICY_MAX_AGE_S: '15', WEIR_ON_STALE_POLICY: 'refuse' }
  const ingress = await start({ ...snapshot, ...rule })
  expect((await ingress.ask()).status).toBe(200)
  expect(await ingress.readiness()).toMatch(/^200 [\s\S]*policy: warning: waiting for Kafka/)
  await until(async () => (await ingress.ask()).status === 503)
  const refused = await ingress.ask()
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await ingress.readiness()).toMatch(/^503 [\s\S]*policy: not confirmed by Kafka/)
  await kafka.restart()
  await until(async () => (await ingress.ask()).status === 200)
  await until(async () => !(await ingress.readiness()).includes('policy:'))
})
