import { readDeadLetters } from '@weir/audit/dead-letters.ts'
import { encodeAlert } from '@weir/contracts/alert.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { afterAll, expect, test } from 'vitest'
import { type RunningExample, startConsumerExamples } from '../../support/alerting/consumer-examples.ts'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { until } from '../../support/until.ts'

const stack = await forFile(openAlertingStack([]))
const sender = await forFile(createRecordSender(kafkaOptions(stack.kafka.address)))
const examples = await startConsumerExamples(stack.kafka.address)
afterAll(() => Promise.all(examples.map((example) => example.close())))
await stack.start()

/** How often each of these texts stands in what an example has printed. */
const counts = (example: RunningExample, texts: readonly string[]) =>
  texts.map((text) => example.lines().filter((line) => line.includes(text)).length)

test('the examples of kafkajs, confluent-kafka and kcat handle each alert once, repeats and foreign records among them', async () => {
  await stack.decide(['acme', 'beta'], 800)
  await stack.decide(['acme'], 1_000)
  for (const example of examples) await until(() => example.lines().length >= 3)
  const [line = '{}'] = examples.flatMap((one) => (one.name === 'kafkajs' ? one.lines() : []))
  const { id, type, subject, data } = JSON.parse(line)
  expect({ id, type, subject, data }).toMatchObject({ type: 'weir.quota.reached', data: { limit: 'day', size: 1_000 } })

  const again = encodeAlert({ id, type, subject, time: new Date().toISOString(), data })
  await sender.send(topics.alerts, [
    { key: 'acme', value: 'not ours', headers: { traceparent: '\u00ff\u0000' } },
    { key: 'acme', value: 'no JSON', headers: again.headers },
    { key: 'acme', value: null, headers: { ce_source: '/weir' } },
    again,
    { ...again, key: 'beta' },
    { key: 'beta', value: 'nor this' },
  ])
  // These stand behind what was repeated, in the partitions of both.
  await stack.decide(['acme', 'beta'], 10_000, { size: 10_000 })
  for (const example of examples) {
    await until(() => example.lines().length >= 5)
    expect([example.name, ...counts(example, [id, 'not ours', 'nor this'])]).toEqual([example.name, 1, 0, 0])
    expect([example.name, example.lines().length]).toEqual([example.name, 5])
  }
}, 120_000)

test('a record of another program among the alerts is kept as a dead letter, with its position', async () => {
  const letters: string[] = []
  const read = async () => {
    letters.length = 0
    for await (const { value, reason } of readDeadLetters(
      kafkaOptions(stack.kafka.address),
      topics.alertsDeadLetters,
    )) {
      letters.push(`${value}: ${reason}`)
    }
    return letters.length >= 4
  }
  await until(read)
  expect(letters.sort()).toEqual([
    'no JSON: the value is not JSON',
    'nor this: not an event of Weir',
    'not ours: not an event of Weir',
    'null: not an event of Weir',
  ])
}, 60_000)
