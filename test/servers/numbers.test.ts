import { randomUUID } from 'node:crypto'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { readLastOffset, readNumbers } from '@weir/clickhouse/number-queries.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { startTables } from '../support/servers/tables.ts'

const tables = await startTables()
afterAll(() => tables.close())

/** Rows of one journal in partition 2, with equally many numbers and offsets. */
async function insertRows(
  table: 'decisions' | 'outcomes',
  block: { topicId: string; journal: string; seq: number; offset: number; count: number },
) {
  const fields = {
    v: 1,
    ts: '2026-11-20 10:00:01.000',
    subject: 'acme',
    partition: 2,
    journal: block.journal,
    ...(table === 'decisions' ? { outcome: 'allow', count: 1 } : { status: 200 }),
    topic_id: block.topicId,
  }
  const lines = Array.from(
    { length: block.count },
    (_, at) =>
      `${JSON.stringify({ ...fields, id: randomUUID(), seq: block.seq + at, offset: block.offset + at, limits: [] })}\n`,
  )
  await insertBlock(tables.client, {
    table: `weir.${table}`,
    dedupToken: randomUUID(),
    lines: Buffer.from(lines.join('')),
  })
}

describe.each([
  ['decisions', 'weir.decisions.v1'],
  ['outcomes', 'weir.outcomes.v1'],
] as const)('the numbers of %s before an offset', (table, topic) => {
  const [topicId, journal, other] = [randomUUID(), randomUUID(), randomUUID()]
  const life = { topic, topicId, partition: 2 }

  it('are those of the blocks before it, however many came after, and before an insert there are none', async () => {
    expect(await readNumbers(tables.client, life, 100n)).toEqual(new Map())
    expect(await readLastOffset(tables.client, life)).toBeUndefined()
    await insertRows(table, { topicId, journal, seq: 0, offset: 10, count: 10 })
    await insertRows(table, { topicId, journal, seq: 10, offset: 20, count: 10 })
    await insertRows(table, { topicId, journal: other, seq: 0, offset: 30, count: 5 })
    expect(await readNumbers(tables.client, life, 10n)).toEqual(new Map())
    expect(await readNumbers(tables.client, life, 20n)).toEqual(new Map([[journal, 9]]))
    expect(await readNumbers(tables.client, life, 30n)).toEqual(new Map([[journal, 19]]))
    expect(await readNumbers(tables.client, life, 35n)).toEqual(
      new Map([
        [journal, 19],
        [other, 4],
      ]),
    )
    expect(await readLastOffset(tables.client, life)).toBe(34n)
    expect(await readNumbers(tables.client, { ...life, partition: 3 }, 35n)).toEqual(new Map())
  })

  it('are exact in the middle of a block', async () => {
    expect(await readNumbers(tables.client, life, 15n)).toEqual(new Map([[journal, 4]]))
    expect(await readNumbers(tables.client, life, 27n)).toEqual(new Map([[journal, 16]]))
  })

  it('are the same after the blocks of a journal have become one row', async () => {
    const columns = 'topic, topic_id, partition, journal, from_offset, to_offset, from_seq, to_seq'
    for (const query of [
      'CREATE TABLE weir.blocks AS weir.numbers',
      `INSERT INTO weir.blocks SELECT ${columns}, now() - INTERVAL 8 DAY FROM weir.numbers`,
      'TRUNCATE TABLE weir.numbers',
      'INSERT INTO weir.numbers SELECT * FROM weir.blocks',
      'DROP TABLE weir.blocks',
    ]) {
      await tables.client.command({ query })
    }
    await tables.client.command({ query: 'OPTIMIZE TABLE weir.numbers FINAL' })
    expect(await tables.rows(`SELECT count() AS n FROM weir.numbers WHERE topic_id = '${topicId}'`)).toEqual([
      { n: '2' },
    ])
    expect(await readNumbers(tables.client, life, 27n)).toEqual(new Map([[journal, 16]]))
    expect(await readNumbers(tables.client, life, 30n)).toEqual(new Map([[journal, 19]]))
    expect(await readLastOffset(tables.client, life)).toBe(34n)
  })

  it('count all of an earlier life of the topic, whose offsets mean nothing now', async () => {
    const next = { ...life, topicId: randomUUID() }
    expect(await readNumbers(tables.client, next, 0n)).toEqual(
      new Map([
        [journal, 19],
        [other, 4],
      ]),
    )
    expect(await readLastOffset(tables.client, next)).toBeUndefined()
  })
})
