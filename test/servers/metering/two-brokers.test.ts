import { topics } from '@weir/contracts/topics.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startSecondBroker } from '../../support/servers/changed-kafka.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { until } from '../../support/until.ts'
import { type MeteringStack, newJournal, once, openMeteringStack, settled } from './open-metering.ts'

let stack: MeteringStack
let second: RunningServer
beforeAll(async () => {
  stack = await openMeteringStack(async () => {
    const first = await startServer(kafkaServer)
    second = await startSecondBroker(first)
    return first
  })
})
afterAll(async () => {
  await second?.close()
  await stack?.close()
})

test('Partitions that two brokers lead are one insert a second, as those of one are', async () => {
  const { topics: described } = await stack.admin.fetchTopicMetadata({ topics: [topics.decisions] })
  const leaders = new Map(described[0]?.partitions.map(({ partitionId, leader }) => [partitionId, leader]))
  expect(new Set(leaders.values()).size).toBe(2)
  const metering = await stack.start()
  onTestFinished(() => metering.kill('SIGKILL'))
  const isReady = () =>
    metering.ready().then(
      ({ status }) => status === 200,
      () => false,
    )
  await until(isReady, 40_000)
  const sent = [...leaders.keys()].map((partition) => ({ partition, journal: newJournal(), count: 0 }))
  /** Sends on until so many blocks more are inserted; returns how many seconds that took. */
  const sendDuring = async (to: typeof sent, blocks: number) => {
    const [before, startMs] = [await metering.metric('weir_insert_rows_count'), performance.now()]
    const isThere = async () => {
      for (const one of to) {
        await stack.send(one.journal.take(2, one.partition), one.partition)
        one.count += 2
      }
      return (await metering.metric('weir_insert_rows_count')) >= before + blocks
    }
    await until(isThere)
    return (performance.now() - startMs) / 1_000
  }
  // The second broker's first records come while the fetch from the first gathers.
  const ofFirst = sent.filter(({ partition }) => leaders.get(partition) === leaders.get(0))
  await sendDuring(ofFirst, 3)
  await sendDuring(sent, 2)
  // Each broker's by itself would be sixteen in eight seconds.
  expect(await sendDuring(sent, 8)).toBeGreaterThan(6)
  for (const { journal, count } of sent) expect(await settled(stack, journal.subject, count)).toEqual(once(count))
})
