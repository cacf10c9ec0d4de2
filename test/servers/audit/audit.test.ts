import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditPorts, auditAll } from '@weir/audit/audit-all.ts'
import { repair } from '@weir/audit/repair.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { createQuotaCounts } from '@weir/redis/quota-counts.ts'
import { describe, expect, it } from 'vitest'
import { decisionInput } from '../../support/audit/decisions.ts'
import { meterAll, openTestJournal } from '../../support/audit/pipeline.ts'
import { startAuditStack } from '../../support/audit/stack.ts'
import { forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { runWeir } from '../../support/weir-up.ts'

const hourMs = 3_600_000
const nowMs = Date.now()
/** The day's quota lasts from hours before this run to hours after it, whenever that is. */
const isNearMidnight = Math.abs(((nowMs / hourMs) % 24) - 12) > 6
const [timeZone, shiftMs] = isNearMidnight ? ['Etc/GMT+12', 12 * hourMs] : ['UTC', 0]
const policy = `
version: 1
plans: { free: { limits: [day] } }
limits: { day: { algorithm: fixed_window, size: 5000, period: day } }
subjects: { acme: { plan: free, timeZone: ${timeZone} }, other: { plan: free, timeZone: ${timeZone} } }
`
const quota = [{ name: 'day', unit: 'day', timeZone } as const]

const stack = await forFile(startAuditStack())
const policyFile = join(stack.kafka.dir, 'weir.yaml')
await writeFile(policyFile, policy)
await publishHours()

/** Two journals, marks, records that were sent twice, a dead letter, and what Redis counted for all that. */
async function publishHours(): Promise<void> {
  const [one, two] = [openTestJournal(stack), openTestJournal(stack)]
  const many = (subject: string, tsMs: number, count: number) =>
    Array.from({ length: count }, () => decisionInput({ subject, tsMs, cost: 2 }, quota))
  await one.publish(many('acme', nowMs - hourMs, 10))
  await one.mark()
  await one.publish(many('acme', nowMs, 20), true)
  await two.publish([...many('other', nowMs, 5), ...many('acme', nowMs, 5)])
  await two.publishPoison('acme')
  await two.publish(many('acme', nowMs, 3))
  await one.mark()
  await two.mark()
  await meterAll(stack)
  const common = { limit: 'day', keyId: '', route: '', method: '' }
  const dayMs = 24 * hourMs
  const endMs = (Math.floor((nowMs - shiftMs) / dayMs) + 1) * dayMs + shiftMs
  await createQuotaCounts(stack.servers).raise([
    { ...common, subject: 'acme', endMs, units: 76, key: 'weir:1:{acme}:day' },
    { ...common, subject: 'other', endMs, units: 10, key: 'weir:1:{other}:day' },
  ])
}

interface AuditReport {
  readonly findings: readonly Readonly<Record<string, string>>[]
  readonly repaired?: readonly string[]
  readonly left?: readonly object[]
  readonly above: object
  readonly compared: { readonly offsets: number; readonly counts: number }
}

/** As a person calls it. */
async function weirAudit(...flags: readonly string[]): Promise<{ code: number | null; report: AuditReport }> {
  const args = ['audit', '--policy', policyFile, '--json', ...flags]
  const { code, stdout, stderr } = await runWeir(args, stack.environment)
  if (stdout === '') throw new Error(`weir audit: ${code} ${stderr}`)
  return { code, report: JSON.parse(stdout) }
}

const ports = (): AuditPorts => ({
  clickhouse: stack.clickhouse,
  kafka: kafkaOptions(stack.kafka.address),
  servers: stack.servers,
  policy: requirePolicy(policy, 'the test'),
  nowMs: Date.now,
  pause: async () => undefined, // nothing is on its way
})
const span = { fromMs: Math.floor(nowMs / hourMs - 3) * hourMs, toMs: Math.ceil(nowMs / hourMs + 1) * hourMs }

const tables = ['usage_1m', 'usage_15m', 'usage_total_15m']

/** Everything that is kept, in one order. */
async function everything(): Promise<string> {
  const sums = await Promise.all(
    tables.map((table) =>
      stack.rows(
        `SELECT * REPLACE (sum(count) AS count, sum(cost) AS cost) FROM weir.${table} GROUP BY ALL ORDER BY ALL`,
      ),
    ),
  )
  const raw = await stack.rows('SELECT id, journal, seq, partition, offset FROM weir.decisions ORDER BY ALL')
  const used = await Promise.all(['acme', 'other'].map((one) => stack.redis.getBuffer(`weir:1:{${one}}:day`)))
  return JSON.stringify([sums, raw, used.map((value) => value?.toString('hex'))])
}

const remove = (table: string, which: string) =>
  stack.clickhouse.command({ query: `DELETE FROM weir.${table} WHERE ${which} SETTINGS lightweight_deletes_sync = 2` })

/** Breaks something, and sees it named, repaired, and all as it was before. */
async function expectNamedAndRepaired(breakIt: () => Promise<unknown>, named: readonly object[]): Promise<void> {
  const before = await everything()
  await breakIt()
  expect(await everything()).not.toBe(before)
  const found = await auditAll(ports(), span)
  expect(found.findings).toEqual(named)
  await repair(ports(), found, span, () => undefined)
  expect((await auditAll(ports(), span)).findings).toEqual([])
  expect(await everything()).toBe(before)
}

const difference = (check: string, what: unknown, expected: unknown, found: unknown, more: object = {}) =>
  expect.objectContaining({ check, what, expected, found, ...more })

describe('an audit', () => {
  it('of what is whole finds nothing: neither marks, duplicates nor dead letters count as missing', async () => {
    const { code, report } = await weirAudit()
    expect([code, report.findings]).toEqual([0, []])
    // 10 + 2 × 20 + 5 + 5 + 1 + 3 records and the marks.
    expect(report.compared.offsets).toBeGreaterThanOrEqual(64 + 4)
    expect(report.compared.counts).toBe(2)
    expect(await stack.rows('SELECT toUInt32(count()) AS n FROM weir.decisions')).toEqual([{ n: 43 }])
  })

  it('names a rollup’s row that is gone, and adds it again', async () => {
    const hour = new Date(Math.floor(nowMs / hourMs) * hourMs).toISOString().slice(0, 16).replace('T', ' ')
    const where = { where: hour, note: expect.stringContaining('other') }
    await expectNamedAndRepaired(
      () => remove('usage_15m', "subject = 'other'"),
      [
        difference('rollups', 'usage_15m.count', expect.any(String), expect.any(String), where),
        difference('rollups', 'usage_15m.cost', expect.any(String), expect.any(String), where),
      ],
    )
  })

  it('names raw rows that are gone but counted, and reads them again from Kafka', async () => {
    await expectNamedAndRepaired(
      () => remove('decisions', "subject = 'other'"),
      [
        ...[...tables, 'limits_15m']
          .toSorted()
          .flatMap((table) => [
            difference('rollups', `${table}.count`, expect.any(String), expect.any(String)),
            difference('rollups', `${table}.cost`, expect.any(String), expect.any(String)),
          ]),
        difference('numbers', 'missing records', '0', '5'),
        difference('kafka', 'records without a row', '0', '5'),
      ].sort(byCheck),
    )
  })

  it('names raw rows that are gone with all that was made of them', async () => {
    await expectNamedAndRepaired(
      async () => {
        await remove('decisions', "subject = 'acme'")
        for (const table of ['usage_1m', 'usage_15m']) await remove(table, "subject = 'acme'")
        await remove('usage_total_15m', '1')
      },
      expect.arrayContaining([difference('kafka', 'records without a row', '0', '38')]),
    )
  })

  it('names a quota whose count Redis has lost, and raises it', async () => {
    await expectNamedAndRepaired(
      () => stack.redis.del('weir:1:{acme}:day'),
      [difference('quotas', 'used of day', '76', '0', { where: 'weir:1:{acme}:day' })],
    )
  })

  it('reports a count that is above the records, and does not call it wrong: a killed process leaves such', async () => {
    const key = 'weir:1:{other}:day'
    const before = (await stack.redis.getBuffer(key)) ?? Buffer.alloc(0)
    const more = Buffer.from(before)
    more.writeDoubleBE(before.readDoubleBE(9) + 2, 9)
    await stack.redis.set(key, more, 'KEEPTTL')
    const { findings, above } = await auditAll(ports(), span)
    expect({ findings, above }).toEqual({ findings: [], above: { counts: 1, units: 2 } })
    await stack.redis.set(key, before, 'KEEPTTL')
  })

  it('names what the rollup of outcomes lacks, and makes its quantiles from the raw rows too', async () => {
    const outcome = (seq: number) => ({
      v: 1,
      id: randomUUID(),
      ts: new Date(nowMs).toISOString().slice(0, 23).replace('T', ' '),
      subject: 'acme',
      route: 'GET /',
      method: 'GET',
      status: 200,
      duration_ms: seq,
      bytes_in: 1,
      bytes_out: 2,
      upstream: 'demo',
      error: '',
      journal,
      seq,
      partition: 0,
      offset: seq,
    })
    const journal = randomUUID()
    const values = Array.from({ length: 20 }, (_, seq) => outcome(seq))
    await stack.clickhouse.insert({ table: 'weir.outcomes', values, format: 'JSONEachRow' })
    const median = () =>
      stack.rows(
        'SELECT sum(count) AS n, quantilesTDigestMerge(0.5, 0.9, 0.99)(duration_ms) AS q FROM weir.outcomes_15m',
      )
    const before = await median()
    await remove('outcomes_15m', '1')
    const found = await auditAll(ports(), span)
    expect(found.findings).toContainEqual(difference('rollups', 'outcomes_15m.count', '20', '0'))
    await repair(ports(), found, span, () => undefined)
    expect((await auditAll(ports(), span)).findings).toEqual([])
    expect(await median()).toEqual(before)
  })

  it('names what the rollup of limits lacks, and makes its maxima from the raw rows too', async () => {
    const read = () =>
      stack.rows(
        'SELECT subject, limit, max(used), max(size), max(share), sum(count), sum(refused), sum(cost) FROM weir.limits_15m GROUP BY ALL ORDER BY ALL',
      )
    const before = await read()
    await remove('limits_15m', "subject = 'acme'")
    const found = await auditAll(ports(), span)
    expect(found.findings).toContainEqual(
      difference('rollups', 'limits_15m.count', expect.any(String), expect.any(String)),
    )
    await repair(ports(), found, span, () => undefined)
    expect((await auditAll(ports(), span)).findings).toEqual([])
    expect(await read()).toEqual(before)
    expect(before).toHaveLength(2)
  })

  it('with --repair, repairs all of it and says what it did', async () => {
    await remove('usage_1m', "subject = 'other'")
    await stack.redis.del('weir:1:{other}:day')
    const { code, report } = await weirAudit('--repair')
    expect([code, report.left]).toEqual([0, []])
    expect(report.repaired).toEqual([
      expect.stringMatching(/^repaired usage_1m for the hour from /),
      'raised in Redis: 1 count of quotas',
    ])
  })

  it('with --repair, does not name among what it repaired the records that ClickHouse refuses', async () => {
    const command = (query: string) => stack.clickhouse.command({ query })
    await remove('decisions', "subject = 'other'")
    await stack.redis.del('weir:1:{other}:day') // an audit waits for records of a count that is above them
    await command("ALTER TABLE weir.decisions ADD CONSTRAINT not_other CHECK subject != 'other'")
    const { code, report } = await weirAudit('--repair')
    await command('ALTER TABLE weir.decisions DROP CONSTRAINT not_other')
    expect([code, report.repaired]).toEqual([1, expect.not.arrayContaining([expect.stringContaining('refuses')])])
    expect(report.left).toContainEqual(expect.objectContaining({ check: 'kafka' }))
    const { code: codeAfter, report: after } = await weirAudit('--repair')
    expect([codeAfter, after.left]).toEqual([0, []])
    expect(after.repaired).toContainEqual(expect.stringContaining('inserted 5 rows again'))
  })

  it('names rows that are there twice, which only a person can remove', async () => {
    await stack.clickhouse.command({
      query:
        "INSERT INTO weir.decisions SELECT * FROM weir.decisions WHERE subject = 'other' LIMIT 1 SETTINGS insert_deduplicate = 0",
    })
    const { code, report } = await weirAudit('--repair')
    expect(code).toBe(1)
    expect(report.findings).toContainEqual(difference('numbers', 'records that stand twice', '0', '1'))
    expect(report.left).toContainEqual(difference('numbers', 'records that stand twice', '0', '1'))
  })
})

const checks = ['rollups', 'numbers', 'kafka', 'quotas']
const byCheck = (a: { sample?: { check?: string } }, b: { sample?: { check?: string } }) =>
  checks.indexOf(a.sample?.check ?? '') - checks.indexOf(b.sample?.check ?? '')
