import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseTs } from '@weir/contracts/timestamp.ts'
import { noCrash } from '@weir/runtime/crash-point.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { JournalState } from '../format/journal-state.ts'
import { TemporaryBase } from '../testing/temporary-journal.ts'
import { JournalSender } from './journal-sender.ts'
import { OrphanJournals } from './orphan-journals.ts'
import { Publisher } from './publisher.ts'
import type { Sink, SinkBatch, SinkResult } from './sink.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

const silent = createLogger('publisher', 'silent')
const quiet = { log: silent, crash: noCrash, onTrouble: () => undefined }

const until = async (what: () => boolean) =>
  expect(await waitUntil(what, { deadlineMs: 20_000, everyMs: 10 })).toBe(true)

/** Kafka as one broker that answers each batch with `outcome`. */
class Broker implements Sink {
  outcome: (batch: SinkBatch) => SinkResult['outcome'] = () => 'stored'
  readonly values: string[] = []
  learnt = 0

  async learn(): Promise<void> {
    this.learnt += 1
  }

  brokers = () => 1
  topic = () => undefined
  leaderOf = () => 1
  whyNoLeader = () => ''

  async send(_: number, batches: readonly SinkBatch[]) {
    return batches.map((batch) => {
      const outcome = this.outcome(batch)
      if (outcome === 'stored') this.values.push(...batch.records.map(({ value }) => value.toString()))
      return { topic: batch.topic, partition: batch.partition, outcome, reason: outcome }
    })
  }

  close = () => undefined
}

/** A publisher of the journal of a living process. */
async function publish(base: TemporaryBase, broker: Broker) {
  const { writer, directory } = await base.open()
  const sender = new JournalSender({
    path: directory.path,
    state: writer.state,
    inFlightBytesMax: 1e6,
    log: silent,
    crash: noCrash,
  })
  const { state } = writer
  const onTick = (nowMs: number) => !sender.fill(nowMs)
  const publisher = new Publisher({ ...quiet, sink: broker, state, base: base.path, onTick })
  publisher.add(sender)
  onTestFinished(() => publisher.end())
  return { sender, state, log: writer.log(0) }
}

test('a refused record that the disk does not take either is kept and tried again, and holds up no other partition', async () => {
  await using base = new TemporaryBase()
  const inTheWay = join(base.path, 'quarantine')
  writeFileSync(inTheWay, '')
  const broker = new Broker()
  broker.outcome = ({ records }) => (records.some(({ value }) => value.includes('"bad"')) ? 'rejected' : 'stored')
  const { sender, state, log } = await publish(base, broker)
  log.append('a', '{"x":"bad"', true)
  await until(() => state.get('failedAttempts') >= 2)
  for (let n = 0; n < 20; n += 1) log.append(`k${n}`, `{"n":${n}`, true)
  await until(() => broker.values.length > 5)
  expect(sender.isEmpty).toBe(false)
  rmSync(inTheWay)
  await until(() => sender.isEmpty)
  expect(state.get('quarantined')).toBe(1)
  expect(broker.values.filter((value) => value.includes('"gap":"refused"'))).toHaveLength(1)
})

test('a wall clock that is set back by an hour keeps no partition from being tried again, and no leader from being asked for', async () => {
  await using base = new TemporaryBase()
  const broker = new Broker()
  broker.outcome = () => 'failed'
  const { sender, state, log } = await publish(base, broker)
  log.append('a', '{"n":1', true)
  await until(() => state.get('failedAttempts') >= 2)
  const wallMs = Date.now.bind(Date)
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => wallMs() - 3_600_000)
  onTestFinished(() => clock.mockRestore())
  const { learnt } = broker
  const attempts = state.get('failedAttempts')
  await until(() => state.get('failedAttempts') > attempts + 1 && broker.learnt > learnt + 1)
  broker.outcome = () => 'stored'
  await until(() => sender.isEmpty)
  expect(broker.values).toHaveLength(1)
})

test("a dead process's journal ends with marks of the wall clock's time", async () => {
  await using base = new TemporaryBase()
  const dead = await base.open()
  dead.writer.log(0).append('a', '{"n":1', true)
  await dead.writer.close()
  await dead.directory.release()
  const { directory } = await base.open()
  const broker = new Broker()
  const rest = { ...quiet, base: base.path }
  const onTick = (nowMs: number) => {
    adopted.tick(nowMs)
    return true
  }
  const publisher = new Publisher({ ...rest, sink: broker, state: new JournalState(), onTick })
  const adopted = new OrphanJournals({ ...rest, into: directory, publisher, onCorrections: () => undefined })
  onTestFinished(() => publisher.end())
  const beforeMs = Date.now()
  publisher.wake(0)
  await until(() => broker.values.length > 0 && adopted.count === 0)
  const times = broker.values.flatMap((value) => JSON.parse(value).mark ?? []).map((mark) => parseTs(mark) ?? 0)
  expect(times).toHaveLength(5)
  expect(Math.min(...times)).toBeGreaterThanOrEqual(beforeMs)
  expect(Math.max(...times)).toBeLessThanOrEqual(Date.now())
})
