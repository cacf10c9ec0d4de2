import { randomUUID } from 'node:crypto'
import { findRollups, quoted } from '@weir/clickhouse/audit/rollups.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { type InDoubtBlock, repairBlock } from '@weir/clickhouse/repair/repair-block.ts'
import { repairRollup } from '@weir/clickhouse/repair/repair-rollup.ts'
import { insertRows, repairBlockRows } from '@weir/clickhouse/repair/repair-rows.ts'
import { RepairSession } from '@weir/clickhouse/repair/repair-session.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createUsageStore } from '@weir/metering/usage-store.ts'
import { expect, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { isOnCluster } from '../../support/servers/cluster-server.ts'
import { newJournal, once, openMeteringStack, settled } from './open-metering.ts'

const stack = await forFile(openMeteringStack())

const topicId = randomUUID()

/** A block of so many records, as metering inserts it. */
function blockOf(records: readonly string[], partition: number): InDoubtBlock {
  const lines = records.map(
    (record, offset) => `${record.slice(0, -1)},"topic_id":"${topicId}","partition":${partition},"offset":${offset}}\n`,
  )
  const token = `${topicId}:${partition}:0-${records.length - 1}`
  const months = [Buffer.from(lines.join(''))]
  return { topic: topics.decisions, topicId, table: 'decisions', dedupToken: token, months }
}

test('processes that repair the same tables at the same time leave the same rows as one process', async () => {
  const journal = newJournal()
  // One subject in several partitions, as after partitions were added: each process repairs what the others repair too.
  const blocks = [0, 1, 2].map((partition) => blockOf(journal.take(100, partition), partition))
  for (const { table, dedupToken, months } of blocks) {
    await insertBlock(stack.client, { table, dedupToken, lines: months[0] ?? Buffer.alloc(0) })
  }
  for (const [table, rows] of [
    ['usage_15m', `subject = ${quoted(journal.subject)}`],
    ['usage_total_15m', '1'],
  ]) {
    const query = `DELETE FROM weir.${table} WHERE ${rows} SETTINGS lightweight_deletes_sync = 2`
    await stack.client.command({ query })
  }
  const reports = await Promise.all(blocks.map((block) => repairBlock(stack.client, block)))
  expect(reports.map(({ undetermined }) => undetermined)).toEqual([[], [], []])
  expect(await settled(stack, journal.subject, 300)).toEqual(once(300))
  const [total] = await stack.rows<{ n: number }>('SELECT toUInt32(sum(count)) AS n FROM weir.usage_total_15m')
  expect(total).toEqual({ n: 300 })
})

test('a block that is sent again after views were created again is in every table once, and before that nothing is compared', async () => {
  const journal = newJournal()
  const records = journal.take(100, 4)
  const block = { ...blockOf(records, 4), dedupToken: randomUUID(), timestampMs: Date.now() }
  const [lines = Buffer.alloc(0)] = block.months
  const store = createUsageStore(stack.client, 10_000, 0)
  const signal = AbortSignal.timeout(60_000)
  const insert = () => store.insert({ table: block.table, lines, dedupToken: block.dedupToken }, signal)
  await insert()
  const options = { signal, isFenced: () => false, isForced: false }
  // A replica of a cluster cannot know what another one has: there everything that was sent again is compared.
  const compared = { rows: 0, rollups: [], undetermined: [] }
  expect(await store.repair(block, options)).toEqual(isOnCluster ? compared : undefined)
  const views = await stack.rows<{ name: string; create_table_query: string }>(
    "SELECT name, create_table_query FROM system.tables WHERE name IN ('usage_1m_mv', 'usage_total_15m_mv')",
  )
  for (const { name, create_table_query } of views) {
    await stack.client.command({ query: `DROP VIEW weir.${name} SYNC` })
    await stack.client.command({ query: create_table_query })
  }
  await insert()
  expect(await settled(stack, journal.subject, 0)).not.toEqual(once(100))
  const report = await store.repair(block, options)
  expect(report?.rollups.toSorted()).toEqual(['usage_1m', 'usage_total_15m'])
  expect(await settled(stack, journal.subject, 0)).toEqual(once(100))
})

test('rows that an interrupted delete is about to remove do not count as rows that stay', async () => {
  const journal = newJournal()
  const block = { ...blockOf(journal.take(100), 3), dedupToken: randomUUID() }
  const { table, dedupToken, months } = block
  await insertBlock(stack.client, { table, dedupToken, lines: months[0] ?? Buffer.alloc(0) })
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
  const repairing = repairBlock(client, block)
  const isOver = await Promise.race([repairing.then(() => true), asked.promise])
  await command('SYSTEM START MERGES weir.decisions')
  expect(isOver).toBe(false)
  expect(await repairing).toMatchObject({ rows: 100, undetermined: [] })
  expect(await settled(stack, journal.subject, 100)).toEqual(once(100))
})

const countOf = async (table: string, subject: string) => {
  const [row] = await stack.rows<{ n: number }>(
    `SELECT toUInt32(sum(count)) AS n FROM weir.${table} WHERE subject = ${quoted(subject)}`,
  )
  return row?.n
}

test('an hour is repaired exactly while other processes insert, into it and into later ones', async () => {
  const [old, now] = [newJournal(), newJournal()]
  const nowMs = Date.now()
  const earlierMs = nowMs - 3 * 3_600_000
  const hourOf = (ms: number) => {
    const fromMs = Math.floor(ms / 3_600_000) * 3_600_000
    return { fromMs, toMs: fromMs + 3_600_000 }
  }
  let offset = 0
  const insert = async (journal: typeof old, tsMs = Date.now()) => {
    const records = journal.take(10, 4, { tsMs })
    const lines = records.map((record) => {
      offset += 1
      return `${record.slice(0, -1)},"topic_id":"${topicId}","partition":4,"offset":${offset}}\n`
    })
    await insertBlock(stack.client, {
      table: 'decisions',
      lines: Buffer.from(lines.join('')),
      dedupToken: randomUUID(),
    })
  }
  await insert(old, earlierMs)
  await insert(now, nowMs)
  for (const { subject } of [old, now]) {
    const query = `DELETE FROM weir.usage_15m WHERE subject = ${quoted(subject)} SETTINGS lightweight_deletes_sync = 2`
    await stack.client.command({ query })
  }
  const rollup = (await findRollups(stack.client)).find(({ table }) => table === 'usage_15m')
  if (rollup === undefined) throw new Error('there is no usage_15m')
  let isOver = false
  // Without a pause: there is no moment in which no insert is under way.
  const busy = Array.from({ length: 2 }, async () => {
    while (!isOver) await insert(now)
  })
  const session = new RepairSession(stack.client, randomUUID())
  const outcome = await repairRollup(session, rollup, hourOf(earlierMs))
  isOver = true
  await Promise.all(busy)
  expect(outcome).toBe('repaired')
  expect(await countOf('usage_15m', old.subject)).toBe(10)

  const others = Array.from({ length: 2 }, async () => {
    for (let inserts = 0; inserts < 20; inserts += 1) await insert(now)
  })
  const [repaired] = await Promise.all([repairRollup(session, rollup, hourOf(nowMs)), ...others])
  expect(repaired).toBe('repaired')
  expect(await countOf('usage_15m', now.subject)).toBe(await countOf('decisions', now.subject))
})

test('rows with the times of more months than one insert may have are inserted, of a block and of an audit', async () => {
  const [ofBlock, ofAudit] = [newJournal(), newJournal()]
  const rowsOf = (journal: typeof ofBlock, partition: number) =>
    Array.from({ length: 101 }, (_, offset) => {
      const tsMs = Date.UTC(new Date().getUTCFullYear(), offset + 12, 15)
      const [record = ''] = journal.take(1, partition, { tsMs })
      const line = `${record.slice(0, -1)},"topic_id":"${topicId}","partition":${partition},"offset":${offset}}`
      return { offset, tsMs, line }
    })
  const session = new RepairSession(stack.client, randomUUID())
  const block = { topic: topics.decisions, topicId, partition: 5, table: 'decisions', rows: rowsOf(ofBlock, 5) }
  expect(await repairBlockRows(session, block)).toBe(101)
  expect(await repairBlockRows(session, block)).toBe(0)
  expect(await countOf('decisions', ofBlock.subject)).toBe(101)
  const inserted = await insertRows(session, 'decisions', rowsOf(ofAudit, 6), 'audit')
  expect(inserted).toEqual({ inserted: 101, refused: 0, why: '' })
  expect(await countOf('decisions', ofAudit.subject)).toBe(101)
})
