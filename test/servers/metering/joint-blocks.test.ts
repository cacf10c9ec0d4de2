import { encodeGapOpen, encodeMark } from '@weir/contracts/journal.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import type { ServiceProcess } from '../../support/service-process.ts'
import { until } from '../../support/until.ts'
import { holdFirstInsert } from './held-insert.ts'
import { endSessions, newJournal, once, openMeteringStack, settled, type TestJournal } from './open-metering.ts'

const stack = await forFile(openMeteringStack())

const partitions = [0, 1, 2, 3, 4, 5]
const month = (ms: number) => new Date(ms).toISOString().slice(0, 7)
const lastMonthMs = () => Date.parse(`${month(Date.now())}-01`) - 86_400_000 // within what minutes are kept for

/** Killed without a word when the test ends. */
async function start(environment: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  const one = await stack.start(environment)
  onTestFinished(() => one.kill('SIGKILL'))
  return one
}

/** Starts a process that dies at a step, and lets the group forget it. */
async function crashAt(step: string): Promise<void> {
  const victim = await start({ WEIR_CRASH_AT: `metering.${step}` })
  await victim.ended
  await endSessions(stack.options)
}

const admin = () => new PartitionAdmin(stack.options, 'weir-metering')

/** Whether all that Kafka has is metered and committed. */
async function isDrained(of: PartitionAdmin): Promise<boolean> {
  for (const partition of partitions) {
    const { committed, end } = await of.describe(topics.decisions, partition)
    if ((committed?.offset ?? 0n) < end || committed?.metadata.includes('"block"') === true) return false
  }
  return true
}

/** A test begins where the one before has left nothing to finish. */
beforeEach(async () => {
  const asked = admin()
  // A Kafka that has just started has no coordinator yet.
  if (!(await isDrained(asked).catch(() => false))) {
    const one = await stack.start()
    await until(() => isDrained(asked).catch(() => false))
    await one.kill('SIGTERM')
  }
  await asked.close()
  await endSessions(stack.options)
})

/** Two processes that share the partitions. */
async function startHeirs(): Promise<ServiceProcess[]> {
  return Promise.all([start(), start()])
}

/** A journal for each partition: a subject's records come by one. */
const newJournals = () => partitions.map(() => newJournal())

/** Each table has this many decisions of each journal once. */
async function expectOnce(journals: readonly TestJournal[], count: number): Promise<void> {
  for (const { subject } of journals) expect(await settled(stack, subject, count)).toEqual(once(count))
}

/** Records of two months in every partition; bad ones, a gap and a mark in some of them. */
async function sendEverything(bad: string) {
  const journals = newJournals()
  const gap = encodeGapOpen({ cause: 'refused', count: 1, fromMs: 0, toMs: 0, detail: '' })
  for (const [partition, journal] of journals.entries()) {
    const records = [...journal.take(40, partition, { tsMs: lastMonthMs() }), ...journal.take(40, partition)]
    const some = partition % 2 === 0 ? [bad, `${gap},"journal":"${journal.id}","seq":80}`] : []
    const mark = encodeMark(Date.now(), journal.id, 80 + some.length / 2, false)
    await stack.send([...records, ...some, mark], partition)
  }
  return journals
}

const withRefused = (text: string) => text.replace('"cost":2', '"cost":"much"')

describe('A block of six partitions whose process is killed is finished by two others that share them', () => {
  // Every step is one of `services/metering/src/meter.test.ts` and of the tier `failure`.
  test.each(['redeclare', 'commit'])('%s', async (step) => {
    const [other = ''] = newJournal().take(1)
    const journals = await sendEverything(step === 'redeclare' ? withRefused(other) : 'bad')
    await crashAt(step)
    const heirs = await startHeirs()
    await expectOnce(journals, 80)
    await Promise.all(heirs.map((heir) => heir.kill('SIGTERM')))
    expect(heirs.map((heir) => heir.said()).join()).not.toContain('sequence numbers never arrived')
  })
})

describe('A block that ClickHouse refuses although every record of it was read', () => {
  const alter = (change: string) => stack.client.command({ query: `ALTER TABLE weir.decisions ${change}` })

  test('stops one partition until the tables are repaired, and the others go on, over a kill', async () => {
    await alter("ADD CONSTRAINT test_only CHECK plan != 'refused'")
    onTestFinished(() => alter('DROP CONSTRAINT IF EXISTS test_only').then(() => undefined))
    const [journals, other] = [newJournals().toSpliced(3, 1), newJournal()]
    const records = other.take(10, 3).map((text) => text.replace('"plan":"free"', '"plan":"refused"'))
    await stack.send(records, 3)
    for (const [at, partition] of [0, 1, 2, 4, 5].entries()) {
      await stack.send(journals[at]?.take(20, partition) ?? [], partition)
    }
    await crashAt('dissolve')
    const metering = await start()
    await expectOnce(journals, 20)
    await until(async () => (await metering.ready()).text.includes('partition 3 is stopped: ROWS_REFUSED'))
    await alter('DROP CONSTRAINT test_only')
    expect(await settled(stack, other.subject, 10)).toEqual(once(10))
    await until(async () => (await metering.ready()).status === 200)
    await until(async () => (await metering.metric('weir_block_recoveries_total')) > 0)
  })
})

test.each([
  ['has declared', 'before'],
  ['has inserted', 'after'],
] as const)(
  'A process that sleeps with a block of six partitions that it %s wakes as a zombie: each record counts once',
  async (_, when) => {
    const journals = newJournals()
    const sendAll = async (count: number) => {
      for (const [partition, journal] of journals.entries()) await stack.send(journal.take(count, partition), partition)
    }
    await sendAll(500)
    const { url, held, release } = await holdFirstInsert(stack.clickhouse.address, when)
    const sleeper = await start({ WEIR_CLICKHOUSE_URL: url })
    await held
    process.kill(sleeper.pid, 'SIGSTOP')
    const heirs = await startHeirs()
    for (const heir of heirs) await until(async () => (await heir.ready()).status === 200)
    await expectOnce(journals, 500)
    const blocks = async () => {
      const counts = await Promise.all(heirs.map((heir) => heir.metric('weir_insert_rows_count')))
      return counts.reduce((sum, count) => sum + count, 0)
    }
    const wanted = (await blocks()) + 10
    let sent = 500
    await until(async () => {
      await sendAll(1)
      sent += 1
      return (await blocks()) >= wanted
    })
    release()
    process.kill(sleeper.pid, 'SIGCONT')
    await sendAll(50)
    await expectOnce(journals, sent + 50)
    await until(async () => (await sleeper.ready()).status === 200)
    await expectOnce(journals, sent + 50)
  },
)

test('Killed at the numbers of a block without rows, every record that comes later is in every table once', async () => {
  const journal = newJournal()
  const gap = encodeGapOpen({ cause: 'refused', count: 1, fromMs: 0, toMs: 0, detail: '' })
  await stack.send([`${gap},"journal":"${journal.id}","seq":0}`])
  await crashAt('numbers')
  await stack.send(journal.take(100, 0, { seq: 1 }))
  await start()
  expect(await settled(stack, journal.subject, 100)).toEqual(once(100))
})

test('A process beside one of an older version waits, says why, and goes on when the other has left', async () => {
  const consumer = createClient(stack.options).consumer({ groupId: 'weir-metering' })
  await consumer.connect()
  await consumer.subscribe({ topics: [topics.decisions] })
  const joined = Promise.withResolvers<void>()
  consumer.on('consumer.group_join', () => joined.resolve())
  await consumer.run({ autoCommit: false, eachBatch: async () => undefined })
  await joined.promise
  const metering = await start()
  await until(async () =>
    (await metering.ready()).text.includes('the consumer group has members that run another version'),
  )
  await consumer.disconnect()
  const journal = newJournal()
  await stack.send(journal.take(10))
  expect(await settled(stack, journal.subject, 10)).toEqual(once(10))
})
