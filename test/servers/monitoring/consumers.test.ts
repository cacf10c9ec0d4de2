import { expect, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'
import { newJournal, openMeteringStack, settled } from '../metering/open-metering.ts'

const stack = await forFile(openMeteringStack())
const metering = await stack.start()

const of = (partition: number) => `{group="weir-metering",topic="weir.decisions.v1",partition="${partition}"}`
const lagOf = (partition: number) =>
  Promise.all(['records', 'seconds'].map((unit) => metering.metric(`weir_consumer_lag_${unit}${of(partition)}`)))

test('What waits for ClickHouse is lag, in records and in seconds, until it is inserted', async () => {
  const journal = newJournal()
  await stack.send(journal.take(10, 1), 1)
  await settled(stack, journal.subject, 10)
  await until(async () => (await lagOf(1)).join() === '0,0')
  await stack.clickhouse.kill('SIGKILL')
  await stack.send(journal.take(5, 1), 1)
  await until(async () => ((await lagOf(1))[1] ?? 0) >= 2)
  expect((await lagOf(1))[0]).toBe(5)
  await stack.clickhouse.restart()
  await until(async () => (await lagOf(1)).join() === '0,0')
  await settled(stack, journal.subject, 15)
})

test('Each insert is observed with its records, by topic', async () => {
  const of = (name: string) => metering.metric(`weir_insert_${name}{topic="weir.decisions.v1"}`)
  const inserted = async () => [await of('rows_sum'), await of('rows_count'), await of('duration_seconds_count')]
  const [rows = 0, inserts = 0] = await inserted()
  const journal = newJournal()
  await stack.send(journal.take(20, 2), 2)
  await settled(stack, journal.subject, 20)
  await until(async () => (await of('rows_sum')) === rows + 20)
  expect(await inserted()).toEqual([rows + 20, inserts + 1, inserts + 1])
  expect(await metering.metric('weir_insert_rows_count{topic="weir.outcomes.v1"}')).toBe(0)
})

test('A process that lost its place in a group counts that, once', async () => {
  const lost = () => metering.metric('weir_consumer_members_lost_total{group="weir-metering"}')
  const isMember = async () => (await stack.admin.describeGroups(['weir-metering'])).groups[0]?.members.length === 1
  await until(isMember)
  const before = await lost()
  process.kill(metering.pid, 'SIGSTOP')
  await until(async () => !(await isMember()))
  process.kill(metering.pid, 'SIGCONT')
  await until(async () => (await isMember()) && (await metering.ready()).status === 200)
  expect((await lost()) - before).toBe(1)
  const journal = newJournal()
  await stack.send(journal.take(3))
  await settled(stack, journal.subject, 3)
})
