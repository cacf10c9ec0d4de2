import { seekMetering } from '@weir/cli/commands/metering.ts'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { expect, onTestFinished, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { until } from '../../support/until.ts'
import { newJournal, once, openMeteringStack, settled } from './open-metering.ts'

const stack = await forFile(openMeteringStack())

/** Killed without a word when the test ends, so that the next one starts with dead members. */
async function start(environment: Readonly<Record<string, string>> = {}) {
  const one = await stack.start(environment)
  onTestFinished(() => one.kill('SIGKILL'))
  return one
}

const says = (one: Awaited<ReturnType<typeof start>>, text: string) => async () =>
  (await one.ready()).text.includes(text)

test('a view that throws is waited for, named, and completed once it is fixed', async () => {
  const metering = await start()
  const journal = newJournal()
  await stack.client.command({
    query: `CREATE MATERIALIZED VIEW weir.broken_mv TO weir.usage_1m AS
      SELECT toDateTime(d.ts, 'UTC') AS ts, throwIf(d.subject = '${journal.subject}', 'broken') AS count FROM weir.decisions AS d`,
  })
  await stack.send(journal.take(300))
  await until(says(metering, 'waits: '))
  await stack.client.command({ query: 'DROP VIEW weir.broken_mv SYNC' })
  expect(await settled(stack, journal.subject, 300)).toEqual(once(300))
  await until(async () => (await metering.ready()).status === 200)
  expect(await metering.metric('weir_dead_letters_total')).toBe(0)
})

test('rows without a commit stop a partition by name, and weir metering seek resolves it without counting twice', async () => {
  const journal = newJournal()
  const first = await stack.start()
  await stack.send(journal.take(50))
  await settled(stack, journal.subject, 50)
  await first.kill('SIGTERM')
  await stack.admin.deleteGroups(['weir-metering'])
  const second = await stack.start()
  await until(says(second, 'ROWS_WITHOUT_COMMIT'))
  await second.kill('SIGTERM')
  const servers = { kafka: kafkaOptions(stack.kafka.address), clickhouse: stack.clickhouse.address }
  const printed: string[] = []
  for (const partition of [0, 1, 2, 3, 4, 5]) {
    // All over again where there is most, after the last row elsewhere.
    const to = partition === 0 ? '0' : 'clickhouse'
    await seekMetering({ partition, to, outcomes: false }, servers, (text) => printed.push(text))
  }
  expect(printed[0]).toContain(' to 0')
  const seek = seekMetering({ partition: 0, to: '999999999', outcomes: false }, servers, () => undefined)
  await expect(seek).rejects.toMatchObject({ code: 'SEEK_INVALID' })
  const third = await start()
  await stack.send(journal.take(50))
  expect(await settled(stack, journal.subject, 100)).toEqual(once(100))
  // Counted after the commit, which follows the rows.
  await until(async () => (await third.metric('weir_duplicate_records_total')) >= 50)
})

test('a topic that is deleted and created again is another one: its offsets begin at 0, and none of its records is dropped as old', async () => {
  const journal = newJournal()
  const before = await stack.start()
  await stack.send(journal.take(40))
  await settled(stack, journal.subject, 40)
  await before.kill('SIGTERM')
  await stack.admin.deleteTopics({ topics: [topics.decisions] })
  // Kafka is a while about both.
  const make = async () => (await ensureTopics(stack.options, await readTopics())).created.includes(topics.decisions)
  await until(() => make().catch(() => false))
  await start()
  const [first = ''] = journal.take(1)
  const sendFirst = () => stack.send([first]).then(() => true)
  await until(() => sendFirst().catch(() => false))
  await stack.send(journal.take(39))
  expect(await settled(stack, journal.subject, 80)).toEqual(once(80))
})
