import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openCounter } from '../support/failure/count.ts'
import { exactly, playScenario } from '../support/failure/scenario.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { type ReadRecord, readTopic } from '../support/servers/read-topic.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack?.close())

const id = () => uuidv7(Date.now())

/** A record as the ingress would write it, of a journal that nobody has, with some of it changed. */
function forged(changes: Readonly<Record<string, unknown>> = {}): string {
  const ts = new Date().toISOString().replace('T', ' ').replace('Z', '')
  const who = { subject: 'wide-0', key_id: '', plan: 'wide', route: '/failure', method: 'GET', cost: 1, count: 1 }
  const what = { outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', denied_by: '', limits: [] }
  return JSON.stringify({ v: 1, id: id(), ts, ...who, ...what, journal: id(), seq: 0, ...changes })
}

/** Records that must not become rows, whole or in part: each lands in the dead letters as it came. */
const poison: Readonly<Record<string, () => string | null>> = {
  'no value': () => null,
  'an empty value': () => '',
  'no JSON': () => 'poison',
  'broken JSON': () => '{"v":1,"id":',
  'JSON that ends too soon': () => `${forged().slice(0, -40)}}`,
  'two lines in one value': () => `${forged()}\n${forged()}`,
  'two rows in one line': () => `${forged()}${forged()}`,
  'two rows with a comma': () => `${forged()},${forged()}`,
  'a row hidden behind a line break in a string': () => `{"a":"\n${forged()}\n"}`,
  'a list of rows': () => `[${forged()}]`,
  'a number for a text': () => forged({ cost: { units: 1 } }),
  'a text for a number': () => forged({ count: 'many' }),
  'a negative count': () => forged({ count: -1 }),
  'a count of nothing': () => forged({ count: 0 }),
  'an outcome that there is not': () => forged({ outcome: 'perhaps' }),
  'no id': () => forged({ id: null }),
  'no time': () => forged({ ts: 'yesterday' }),
  'a list of nulls': () => forged({ limits: [null] }),
  'a megabyte': () => `{"v":1,"id":"${'x'.repeat(1_000_000)}"}`,
  'a megabyte of nested lists': () => `{"limits":${'['.repeat(500_000)}}`,
}

it('records that cannot be read become dead letters, whole, and none becomes a row; the good ones around them count once', async () => {
  const options = stack.kafka
  const sender = createRecordSender(options)
  const sent: (string | null)[] = []
  const { row } = await playScenario(stack, {
    fault: `${Object.keys(poison).length} kinds of poison records`,
    perSecond: 1_000,
    async strike({ load }) {
      for (const make of Object.values(poison)) {
        const value = make()
        sent.push(value)
        await sender.send(topics.decisions, [{ key: `poison-${sent.length % 4}`, value }])
        await load.forMs(250)
      }
    },
  })
  await sender.close()
  expect(row).toEqual(exactly(row))
  // A block that is tried again sends its letters again, under the same keys.
  const byKey = (letters: readonly ReadRecord[]) => new Map(letters.map(({ key, value }) => [String(key), value]))
  const isWhole = (letters: readonly ReadRecord[]) => byKey(letters).size >= sent.length
  const letters = byKey(await readTopic(options, topics.decisionsDeadLetters, isWhole))
  const text = (value: Buffer | string | null) => (value === null ? '(null)' : String(value).slice(0, 2_000))
  expect([...letters.values()].map(text).sort()).toEqual(sent.map(text).sort())
  const counter = openCounter(stack.addresses.clickhouse)
  expect(await counter.rawTotal()).toBe(row.answered)
  await counter.close()
})

it('a record that forges its place in Kafka is counted at the place where it stands', async () => {
  const sender = createRecordSender(stack.kafka)
  const forgedId = id()
  await sender.send(topics.decisions, [{ key: 'x', value: forged({ id: forgedId, partition: 63, offset: 1 }) }])
  await sender.close()
  const counter = openCounter(stack.addresses.clickhouse)
  const found = async () => {
    const partitions = await counter.partitionsOf(forgedId)
    return partitions.length > 0 && partitions
  }
  const partitions = await waitUntil(found, { deadlineMs: 30_000 })
  expect(partitions).toHaveLength(1)
  expect(partitions).not.toContain(63)
  await counter.close()
})
