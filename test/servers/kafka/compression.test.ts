import { closeSync, globSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { afterAll, expect, test } from 'vitest'
import {
  changesOf,
  createPolicyTopic,
  openFeed,
  openWriter,
  policyOfSize,
  wholeChange,
} from '../../support/policy-topic.ts'
import { topicSpec } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { newJournal, once, openMeteringStack, settled } from '../metering/open-metering.ts'

const stack = await openMeteringStack()
const { kafka, options } = stack
afterAll(() => stack.close())

/** Batches of a topic as they are on Kafka's disk: where each begins and ends, and its codec. */
function batchesOf(topic: string) {
  return globSync(join(kafka.dir, `**/${topic}-*/*.log`)).flatMap((file) => {
    const bytes = readFileSync(file)
    const found: { file: string; start: number; bytes: Buffer; codec: number; firstOffset: number }[] = []
    for (let start = 0; start + 61 <= bytes.length; ) {
      const end = start + 12 + bytes.readInt32BE(start + 8)
      const [codec, firstOffset] = [bytes.readInt16BE(start + 21) & 7, Number(bytes.readBigInt64BE(start))]
      found.push({ file, start, bytes: bytes.subarray(start, end), codec, firstOffset })
      start = end
    }
    return found
  })
}
const codecsOf = (topic: string) => new Set(batchesOf(topic).map(({ codec }) => codec))

test.each(['gzip', 'snappy', 'lz4', 'zstd'])(
  'what the broker stores in %s is read by consumers and by followers of the policy',
  async (name) => {
    const codec = ['none', 'gzip', 'snappy', 'lz4', 'zstd'].indexOf(name)
    const config = { 'compression.type': name }
    const spec = { ...topicSpec(1), config }
    await ensureTopics(options, [spec])
    const sender = createRecordSender(options)
    const values = Array.from({ length: 500 }, (_, at) => `value ${at}`)
    await sender.send(
      spec.name,
      values.map((value) => ({ key: 'k', value })),
    )
    await sender.close()
    const records = await readTopic(options, spec.name, ({ length }) => length >= 500)
    expect(records.map(({ value }) => String(value))).toEqual(values)
    const policyTopic = await createPolicyTopic(options, config)
    await openWriter(options, policyTopic).publish(wholeChange(changesOf(policyOfSize(7))))
    expect((await openFeed(options, policyTopic).firstPolicy()).limits.get('minute')?.size).toBe(7)
    expect([codecsOf(spec.name), codecsOf(policyTopic)]).toEqual([new Set([codec]), new Set([codec])])
  },
)

test('a batch that the disk changed is a dead letter and a gap of as many decisions, and nothing waits behind it', async () => {
  const journal = newJournal()
  for (const count of [10, 5, 10]) await stack.send(journal.take(count), 0)
  const [, victim] = batchesOf(topics.decisions)
  if (victim === undefined) throw new Error('there is no second batch')
  const { file, start, bytes, firstOffset } = victim
  const log = openSync(file, 'r+')
  writeSync(log, '*', start + bytes.indexOf(journal.subject) + 3)
  closeSync(log)
  await stack.start()
  expect(await settled(stack, journal.subject, 20)).toEqual(once(20))
  const [letter] = await readTopic(options, topics.decisionsDeadLetters, ({ length }) => length > 0)
  expect(letter?.headers['x-error-reason']).toBe(
    `the batch of offsets ${firstOffset} to ${firstOffset + 4} cannot be read: its checksum is wrong`,
  )
  expect(letter?.value?.length).toBe(bytes.length)
  const gaps = () =>
    stack.rows(`SELECT cause, toUInt32(count) AS missing FROM weir.gaps FINAL WHERE count > 0 ORDER BY cause`)
  const five = [
    { cause: 'dead_letter', missing: 1 },
    { cause: 'lost', missing: 4 },
  ]
  await expect.poll(gaps, { timeout: 20_000 }).toEqual(five)
})
