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
  return { topic: topics.decisions, topicId, partition, table: 'decisions', token, months }
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

test('rows that a delete is about to take, which a kill interrupted, are not taken for rows that stay', async () => {
  const journal = newJournal()
  const block = { ...blockOf(journal.take(100), 3), token: randomUUID() }
  const { table, token, months } = block
  await insertBlock(stack.client, { table, token, lines: months[0] ?? Buffer.alloc(0) })
  const command = (query: string) => stack.client.command({ query })
  // The state between a start and the moment in which the server goes on with it.
  await command('SYSTEM STOP MERGES weir.decisions')
  await command(`DELETE FROM ${table} WHERE subject = ${quoted(journal.subject)} SETTINGS lightweight_deletes_sync = 0`)
  const asked = Promise.withResolvers<boolean>()
  const client = new Proxy(stack.client, {
    get: (target, name) => {
      const member = Reflect.get(target, name)
      if (name !== 'query') return typeof member === 'function' ? member.bind(target) : member
      return (given: { query: string }) => {
        if (given.query.includes('system.mutations')) asked.resolve(false)
        return target.query(given)
      }
    },
  })
  const mending = mendBlock(client, block)
  const isOver = await Promise.race([mending.then(() => true), asked.promise])
  await command('SYSTEM START MERGES weir.decisions')
  expect(isOver).toBe(false)
  expect(await mending).toMatchObject({ rows: 100, unsure: [] })
  expect(await settled(stack, journal.subject, 100)).toEqual(once(100))
})
