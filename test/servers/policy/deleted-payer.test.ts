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
  plans: { paid: { limits: [], prices: 'api' } },
  subjects: { leaver: { plan: 'paid' }, stayer: { plan: 'paid' } },
}

test('A subject that was deleted after its month is invoiced by the price list that it had, and none that never was', async () => {
  expect((await admin.ask('PUT /v1/policy', JSON.stringify(policy))).status).toBe(200)
  const last = `${monthAt(-1)}-10 00:00:00`
  await tables.client.command({
    query: `INSERT INTO weir.decisions (id, ts, subject, outcome, cost, count) VALUES ('${randomUUID()}', '${last}', 'leaver', 'allow', 7, 1)`,
  })
  await tables.client.command({
    query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq) SELECT '${topics.decisions}', '${randomUUID()}', 0, now64(3), 1`,
  })
  expect((await admin.ask('DELETE /v1/subjects/leaver')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/subjects/stayer')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/plans/paid')).status).toBe(204)
  expect((await admin.ask('DELETE /v1/prices/api')).status).toBe(204)

  const close = (period: string, subject: string) =>
    admin.ask<{ items?: { id: string }[]; detail?: string }>('POST /v1/invoices', {
      ...{ period, subjects: [subject], grace: '1ms' },
    })
  // The history is copied within a moment.
  const closed = async () => (await close(monthAt(-1), 'leaver')).status === 200
  expect(await waitUntil(closed, { deadlineMs: 30_000, everyMs: 100 })).toBe(true)
  const [item] = (await close(monthAt(-1), 'leaver')).body.items ?? []
  const { body } = await admin.ask<{ totals: object }>(`GET /v1/invoices/${item?.id}`)
  expect(body.totals).toEqual([{ currency: 'EUR', amount: '14.00' }])

  const later = await close(monthAt(1), 'stayer')
  expect([later.status, later.body.detail]).toEqual([409, expect.stringMatching(/was deleted at .*before the month/)])
  expect((await close(monthAt(-1), 'nobody')).status).toBe(404)
})
