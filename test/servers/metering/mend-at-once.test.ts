import { randomUUID } from 'node:crypto'
import { quoted } from '@weir/clickhouse/audit/span.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { type DoubtedBlock, mendBlock } from '@weir/clickhouse/mend/doubted-block.ts'
import { topics } from '@weir/contracts/topics.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MeteringStack, newJournal, once, openMeteringStack, settled } from './open-metering.ts'

let stack: MeteringStack
beforeAll(async () => {
  stack = await openMeteringStack()
})
afterAll(() => stack?.close())

const topicId = randomUUID()

/** A block of so many records, as metering inserts it. */
function blockOf(records: readonly string[], partition: number): DoubtedBlock {
  const lines = records.map(
    (record, offset) => `${record.slice(0, -1)},"topic_id":"${topicId}","partition":${partition},"offset":${offset}}\n`,
  )
  const token = `${topicId}:${partition}:0-${records.length - 1}`
  const months = [Buffer.from(lines.join(''))]
  return { topic: topics.decisions, topicId, partition, table: 'weir.decisions', token, months }
}

test('processes that mend the same tables at the same time leave what one would', async () => {
  const journal = newJournal()
  // One subject in several partitions, as after partitions were added: each process mends what the others mend too.
  const blocks = [0, 1, 2].map((partition) => blockOf(journal.take(100, partition), partition))
  for (const { table, token, months } of blocks) {
    await insertBlock(stack.client, { table, token, lines: months[0] ?? Buffer.alloc(0) })
  }
  for (const [table, rows] of [
    ['usage_15m', `subject = ${quoted(journal.subject)}`],
    ['usage_total_15m', '1'],
  ]) {
    const query = `DELETE FROM weir.${table} WHERE ${rows} SETTINGS lightweight_deletes_sync = 2`
    await stack.client.command({ query })
  }
  const mended = await Promise.all(blocks.map((block) => mendBlock(stack.client, block)))
  expect(mended.map(({ unsure }) => unsure)).toEqual([[], [], []])
  expect(await settled(stack, journal.subject, 300)).toEqual(once(300))
  const [total] = await stack.rows<{ n: number }>('SELECT toUInt32(sum(count)) AS n FROM weir.usage_total_15m')
  expect(total).toEqual({ n: 300 })
})
