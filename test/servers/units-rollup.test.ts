import { randomUUID } from 'node:crypto'
import { auditRollups } from '@weir/audit/audit-rollups.ts'
import { findRollups } from '@weir/clickhouse/audit/rollups.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { repairBlock } from '@weir/clickhouse/repair/repair-block.ts'
import { repairRollup } from '@weir/clickhouse/repair/repair-rollup.ts'
import { RepairSession } from '@weir/clickhouse/repair/repair-session.ts'
import { topics } from '@weir/contracts/topics.ts'
import { afterAll, expect, test } from 'vitest'
import { startTables } from '../support/servers/tables.ts'
import { linesOf, randomUnits, unitsFromMs, usedOf } from '../support/usage/random-units.ts'

const tables = await startTables()
afterAll(() => tables.close())
const { client } = tables
const hourMs = 3_600_000
const span = { fromMs: unitsFromMs, toMs: unitsFromMs + 2 * hourMs }

const records = randomUnits(300, 24)
const block = { table: 'decisions', dedupToken: randomUUID(), lines: linesOf(records, randomUUID()) }
// Twice, as after a crash: it is counted once.
await insertBlock(client, block)
await insertBlock(client, block)

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)
const quarter = (ms: number) =>
  new Date(Math.floor(ms / 900_000) * 900_000).toISOString().slice(0, 19).replace('T', ' ')

/** The buckets as the records themselves say. */
function wanted() {
  const rows = usedOf(records).map(({ tsMs, subject, keyId, plan, route, meter = '', dims = {}, parents, ...one }) => {
    const names = Object.keys(dims).toSorted(compare)
    const labels = names.map((name) => `${name}=${dims[name]}`)
    return {
      key: JSON.stringify([
        quarter(tsMs),
        subject,
        keyId,
        plan,
        route,
        meter,
        labels,
        parents ?? [],
        one.unit,
        one.basis,
      ]),
      quantity: one.quantity,
    }
  })
  return [...Map.groupBy(rows, ({ key }) => key)]
    .map(([key, of]) => [key, String(of.reduce((sum, one) => sum + one.quantity, 0n)), String(of.length)])
    .toSorted(([a = ''], [b = '']) => compare(a, b))
}

type Bucket = Readonly<Record<'ts' | 'subject' | 'key_id' | 'plan' | 'route' | 'meter' | 'unit' | 'basis', string>> & {
  readonly dims: readonly string[]
  readonly parents: readonly string[]
  readonly quantity: string
  readonly count: string
}

async function buckets() {
  const found = await tables.rows<Bucket>(
    `SELECT * REPLACE (toString(ts) AS ts, toString(sum(quantity)) AS quantity, toString(sum(count)) AS count)
     FROM weir.units_15m GROUP BY ALL HAVING toInt64(quantity) != 0 OR toInt64(count) != 0`,
  )
  return found
    .map(({ ts, subject, key_id, plan, route, meter, dims, parents, unit, basis, quantity, count }) => [
      JSON.stringify([ts, subject, key_id, plan, route, meter, dims, parents, unit, basis]),
      quantity,
      count,
    ])
    .toSorted(([a = ''], [b = '']) => compare(a, b))
}

const audit = async () => (await auditRollups(client, span, Date.now(), { pause: async () => undefined })).findings
const command = (query: string) => client.command({ query })
const rollupOf = async () => {
  const found = (await findRollups(client)).find(({ table }) => table === 'units_15m')
  if (found === undefined) throw new Error('there is no rollup units_15m')
  return found
}

test('Admissions and corrections are counted once by unit, meter and labels; denials and holds are not', async () => {
  expect(wanted().length).toBeGreaterThan(100)
  expect(await buckets()).toEqual(wanted())
  expect(await audit()).toEqual([])
})

const sets = `SELECT * FROM weir.units_15m WHERE notEmpty(dims)`
test.each([
  ['is gone', "DELETE FROM weir.units_15m WHERE subject = 'acme' SETTINGS lightweight_deletes_sync = 2"],
  ['is there twice', `INSERT INTO weir.units_15m ${sets} SETTINGS insert_deduplicate = 0`],
  [
    'has other labels, of equal sums',
    `INSERT INTO weir.units_15m SELECT * REPLACE (arrayReverse(dims) AS dims) FROM weir.units_15m WHERE length(dims) > 1
     UNION ALL SELECT * REPLACE (-quantity AS quantity, -count AS count) FROM weir.units_15m WHERE length(dims) > 1
     SETTINGS insert_deduplicate = 0`,
  ],
])('A bucket that %s is named by the audit, and repaired to what the records say', async (_, damage) => {
  await command(damage)
  expect(await buckets()).not.toEqual(wanted())
  const findings = await audit()
  expect(findings.map(({ what }) => what).join()).toContain('units_15m')
  expect(findings.map(({ note }) => note).join()).toMatch(/\[.*model=small.*\]/)
  const [session, rollup] = [new RepairSession(client, randomUUID()), await rollupOf()]
  expect(await repairRollup(session, rollup, span)).toBe('repaired')
  expect(await buckets()).toEqual(wanted())
  expect(await audit()).toEqual([])
})

test('Metering repairs the buckets of a block in doubt', async () => {
  await command("DELETE FROM weir.units_15m WHERE subject != 'bolt' SETTINGS lightweight_deletes_sync = 2")
  const topicId = '00000000-0000-0000-0000-000000000000'
  const doubt = { topic: topics.decisions, topicId, table: 'decisions', dedupToken: block.dedupToken }
  const report = await repairBlock(client, { ...doubt, months: [block.lines] })
  expect(report).toEqual({ rows: 0, rollups: ['units_15m'], undetermined: [] })
  expect(await buckets()).toEqual(wanted())
})
