import { randomUUID } from 'node:crypto'
import { auditRollups } from '@weir/audit/audit-rollups.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { repairBlock } from '@weir/clickhouse/repair/repair-block.ts'
import { topics } from '@weir/contracts/topics.ts'
import { afterAll, expect, test } from 'vitest'
import { startTables } from '../support/servers/tables.ts'
import { linesOf, randomUnits, unitsFromMs } from '../support/usage/random-units.ts'

const tables = await startTables()
afterAll(() => tables.close())
const { client } = tables

/** A block of requests of one subject in the tree of acme; its offsets begin with a digit of its own. */
async function insertedBlock(subject: string, seed: number) {
  const records = randomUnits(20, seed).map((record) => ({
    ...record,
    subject,
    parents: ['red', 'acme'],
    limits: ['', 'red', 'acme'].map((at) => ({
      name: `of-${at}`,
      used: 1,
      size: 9,
      remaining: 8,
      resetMs: 1,
      by: {},
      at,
    })),
  }))
  const lines = Buffer.from(`${linesOf(records, randomUUID())}`.replaceAll('"offset":', `"offset":${seed}`))
  const block = { table: 'decisions', dedupToken: randomUUID(), lines }
  await insertBlock(client, block)
  return block
}

const mine = await insertedBlock('dana', 1)
await insertedBlock('erin', 2)

test.each(['dana', 'red', 'acme'])('The counts of %s are repaired with those of others below', async (lost) => {
  await client.command({
    query: `DELETE FROM weir.limits_15m WHERE subject = '${lost}' SETTINGS lightweight_deletes_sync = 2`,
  })
  const doubt = { topic: topics.decisions, topicId: '00000000-0000-0000-0000-000000000000', table: 'decisions' }
  const report = await repairBlock(client, { ...doubt, dedupToken: mine.dedupToken, months: [mine.lines] })
  expect(report).toEqual({ rows: 0, rollups: ['limits_15m'], undetermined: [] })
  const span = { fromMs: unitsFromMs, toMs: unitsFromMs + 2 * 3_600_000 }
  expect((await auditRollups(client, span, Date.now(), { pause: async () => undefined })).findings).toEqual([])
})
