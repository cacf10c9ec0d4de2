import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { newJournal, openMeteringStack } from './open-metering.ts'

const behind = [0, 1, 2]
const live = [3, 4, 5]
/** Of each partition that is behind: seconds of work, in requests below Kafka's bound. */
const behindEach = 200_000
const perRequest = 2_000
/**
 * A round of the three has some 24,000 records of this size, one that is not made small three times as many. It is half
 * of the records that wait for no more, since the first rounds are large. How fast this machine is does not count.
 */
const waitedForMax = 75_000

test('A record of a partition that is read as it is written waits for two small rounds of those that are far behind', async () => {
  const stack = await openMeteringStack()
  onTestFinished(() => stack.close())
  const backlog = newJournal('behind')
  for (let sent = 0; sent < behindEach; sent += perRequest) {
    await Promise.all(behind.map((partition) => stack.send(backlog.take(perRequest, partition), partition)))
  }
  // Blocks are as large as a session allows: those of the default one.
  await stack.start({ WEIR_KAFKA_SESSION_MS: '30000' })
  const written = live.map((partition) => ({
    partition,
    journal: newJournal('live'),
    sentAt: [0].slice(1),
    waitedFor: [0].slice(1),
  }))
  const isCaughtUp = async () => {
    const query = 'SELECT subject, toUInt32(sum(count)) AS n FROM weir.decisions GROUP BY subject'
    const rows = await stack.rows<{ subject: string; n: number }>(query)
    const counted = new Map(rows.map(({ subject, n }) => [subject, n]))
    const done = counted.get(backlog.subject) ?? 0
    const isDone = done === behindEach * behind.length
    for (const { partition, journal, sentAt, waitedFor } of written) {
      const seen = counted.get(journal.subject) ?? 0
      waitedFor.push(...sentAt.slice(waitedFor.length, seen).map((at) => done - at))
      if (done === 0 || isDone) continue
      sentAt.push(done)
      await stack.send(journal.take(1, partition), partition)
    }
    return isDone && written.every(({ sentAt, waitedFor }) => waitedFor.length === sentAt.length)
  }
  expect(await waitUntil(isCaughtUp, { deadlineMs: 90_000, everyMs: 50 })).toBe(true)
  const waited = written.flatMap(({ waitedFor }) => waitedFor).sort((a, b) => a - b)
  expect(waited.length).toBeGreaterThan(30)
  expect(waited[Math.floor(waited.length / 2)]).toBeLessThan(waitedForMax)
})
