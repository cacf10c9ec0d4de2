import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { encodeAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { kafkajs } from '@weir/kafka/wire/kafkajs-fixes.ts'
import { expect, onTestFinished, test } from 'vitest'
import { startConsumerExamples } from '../../support/alerting/consumer-examples.ts'
import { forTest } from '../../support/opened.ts'
import { startSecureKafka } from '../../support/servers/secure-kafka.ts'

test('the examples of kafkajs, confluent-kafka and kcat read alerts over TLS, with a password and the two rights that docs/alerts.md names', async () => {
  const [user, password] = ['reader', 'password-of-the-reader']
  // kcat of Debian has a librdkafka whose SCRAM newer Kafkas refuse.
  const kafka = await forTest(startSecureKafka({ plainUsers: { [user]: password } }))
  await kafka.setPassword(user, password)
  await kafka.setPassword('writer', password)
  await kafka.admin.createTopics({ waitForLeaders: true, topics: [{ topic: topics.alerts }] })
  const topic = { resource: 'Topic', name: topics.alerts } as const
  await kafka.grant(user, [
    { ...topic, operation: 'Read' },
    { resource: 'Group', name: 'alert-example-', pattern: 'prefixed', operation: 'Read' },
  ])
  await kafka.grant('writer', [{ ...topic, operation: 'Write' }])

  const kcatConfig = join(dirname(kafka.caFile), 'kcat.conf')
  const lines = ['security.protocol=SASL_SSL', 'sasl.mechanism=PLAIN', `sasl.username=${user}`]
  await writeFile(kcatConfig, [...lines, `sasl.password=${password}`, `ssl.ca.location=${kafka.caFile}\n`].join('\n'))
  const login = { KAFKA_CA: kafka.caFile, KAFKA_USERNAME: user, KAFKA_PASSWORD: password, KCAT_CONFIG: kcatConfig }
  const examples = await startConsumerExamples(kafka.address, login)
  onTestFinished(async () => void (await Promise.all(examples.map((one) => one.close()))))

  const producer = new kafkajs.Kafka(kafka.asUser('writer', password)).producer()
  await producer.connect()
  const alert = { id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', type: 'weir.endpoint.test', subject: 'acme' } as const
  const data = { endpoint: 'ops' }
  await producer.send({
    topic: topics.alerts,
    messages: [encodeAlert({ ...alert, time: '2026-11-22T12:00:00Z', data })],
  })
  await producer.disconnect()
  for (const example of examples) {
    await expect.poll(() => example.lines(), { timeout: 60_000 }).toEqual([expect.stringContaining(alert.id)])
  }
}, 180_000)
