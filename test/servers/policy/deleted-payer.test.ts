import { randomUUID } from 'node:crypto'
import { topics } from '@weir/contracts/topics.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { startTables, type Tables } from '../../support/servers/tables.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'
import { runWeir } from '../../support/weir-up.ts'

let kafka: RunningServer
let tables: Tables
let admin: RunningConsole
beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  tables = await startTables()
  const servers = { WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url }
  admin = await startConsole({ ...servers, WEIR_REDIS_URL: inject('redisUrl') })
}, 180_000)
afterAll(async () => {
  await admin?.close()
  await tables?.close()
  await kafka?.close()
})

const now = new Date()
const monthAt = (months: number) =>
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1)).toISOString().slice(0, 7)
const policy = {
  version: 1,
  prices: { api: { currency: 'EUR', lines: [{ name: 'all', measure: 'units', tiers: [{ unit_amount: '2' }] }] } },
  plans: { paid: { limits: [], prices: 'api' }, free: { limits: [] } },
  subjects: {
    ...Object.fromEntries(['leaver', 'stayer', 'mover', 'inside'].map((id) => [id, { plan: 'paid' }])),
    guest: { plan: 'free' },
  },
}

const historyRows = async (where: string) => {
  const answer = await tables.client.query({
    query: `SELECT count() AS n FROM weir.policy_history FINAL WHERE ${where}`,
    format: 'JSONEachRow',
  })
  return Number((await answer.json<{ n: string }>())[0]?.n)
}
/** Makes the changes of this test that are not moved yet of another time. */
const moveHistory = (to: string) =>
  tables.client.command({
    query: `ALTER TABLE weir.policy_history UPDATE at = '${to}' WHERE at > now64(3) - INTERVAL 1 HOUR SETTINGS mutations_sync = 2`,
  })
const untilCopied = async (where: string, rows: number) =>
  expect(await waitUntil(async () => (await historyRows(where)) >= rows, { deadlineMs: 30_000, everyMs: 100 })).toBe(
    true,
  )

test('A month is invoiced by the last price list that the subject had in it, also of one that has left since', async () => {
  expect((await admin.ask('PUT /v1/policy', JSON.stringify(policy))).status).toBe(200)
  await untilCopied("kind = 'change'", 1)
  await moveHistory(`${monthAt(-3)}-10 00:00:00.000`)
  expect((await admin.ask('PUT /v1/subjects/inside', { plan: 'free' })).status).toBe(200)
  await untilCopied("kind = 'change'", 2)
  await moveHistory(`${monthAt(-1)}-20 00:00:00.000`)
  expect((await admin.ask('PUT /v1/subjects/mover', { plan: 'free' })).status).toBe(200)
  expect((await admin.ask('PUT /v1/subjects/new', { plan: 'paid' })).status).toBe(201)

  const last = `${monthAt(-1)}-10 00:00:00`
  for (const subject of ['leaver', 'mover', 'inside', 'new']) {
    await tables.client.command({
      query: `INSERT INTO weir.decisions (id, ts, subject, outcome, cost, count) VALUES ('${randomUUID()}', '${last}', '${subject}', 'allow', 7, 1)`,
    })
  }
  await tables.client.command({
    query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq) SELECT '${topics.decisions}', '${randomUUID()}', 0, now64(3), 1`,
  })
  expect((await admin.ask('DELETE /v1/subjects/leaver')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/subjects/stayer')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/subjects/new')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/subjects/guest')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/plans/paid')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/prices/api')).status).toBe(204)

  const close = (period: string, subject: string) =>
    admin.ask<{ items?: { id: string }[]; nothing?: { message: string }[]; detail?: string }>('POST /v1/invoices', {
      ...{ period, subjects: [subject], grace: '1ms' },
    })
  // The history is copied within a moment.
  const closed = async () => (await close(monthAt(-1), 'leaver')).status === 200
  expect(await waitUntil(closed, { deadlineMs: 30_000, everyMs: 100 })).toBe(true)
  for (const subject of ['leaver', 'mover', 'inside']) {
    const [item] = (await close(monthAt(-1), subject)).body.items ?? []
    const { body } = await admin.ask<{ totals: object; accepted_gaps: unknown }>(`GET /v1/invoices/${item?.id}`)
    expect([subject, body]).toMatchObject([
      subject,
      { totals: [{ currency: 'EUR', amount: '14.00' }], accepted_gaps: null },
    ])
  }
  const early = await close(monthAt(-4), 'stayer')
  expect([early.status, early.body.detail]).toEqual([409, expect.stringContaining('history does not go back')])

  const later = await close(monthAt(1), 'stayer')
  expect([later.status, later.body.nothing?.[0]?.message]).toEqual([
    200,
    expect.stringMatching(/was deleted at .*before the month/),
  ])
  const isNew = await close(monthAt(-1), 'new')
  expect([isNew.status, isNew.body.items, isNew.body.nothing?.[0]?.message]).toEqual([
    200,
    [],
    'the subject had no price list in the month',
  ])
  expect((await close(monthAt(-1), 'nobody')).status).toBe(409)

  const billed = async (period: string, after = ''): Promise<string[]> => {
    const path = `GET /v1/invoices/subjects?period=${period}&limit=3${after}`
    const { items, next } = (await admin.ask<{ items: { subject: string }[]; next: string | null }>(path)).body
    return [...items.map(({ subject }) => subject), ...(next === null ? [] : await billed(period, `&after=${next}`))]
  }
  // The plan of one that moved before this month was changed in it.
  expect(await billed(monthAt(0))).toEqual(['inside', 'leaver', 'mover', 'new', 'stayer'])
  expect(await billed(monthAt(2))).toEqual([])
  const all = await runWeir(['invoices', 'close', monthAt(-1), '--grace', '1ms', '--json'], admin.environment)
  const { items, nothing } = JSON.parse(all.stdout)
  expect(items.map(({ subject }: { subject: string }) => subject)).toEqual(['inside', 'leaver', 'mover', 'stayer'])
  expect(nothing.map(({ path }: { path: string }) => path)).toEqual(['new'])
})
