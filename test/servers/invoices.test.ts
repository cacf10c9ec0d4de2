import { hash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { askUsageUpTo, readCutoff } from '@weir/clickhouse/billing-queries.ts'
import { type ClickHouseClient, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { readInvoice, readInvoicesOf, type StoredInvoice, storeInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOwnClickhouse } from '../support/servers/own-clickhouse.ts'
import type { RunningServer } from '../support/servers/start-server.ts'

let server: RunningServer
let client: ClickHouseClient
beforeAll(async () => {
  server = await startOwnClickhouse()
  client = connectClickhouse(server.address, 'test')
  await migrate(client, await readMigrations(join(projectRoot, 'infra/clickhouse/migrations')))
})
afterAll(async () => {
  await client?.close()
  await server?.close()
})

const invoiceOf = (subject: string, period: string, document: object, id: string = randomUUID()): StoredInvoice => {
  const text = JSON.stringify(document)
  const times = {
    from: `${period}-01T00:00:00.000Z`,
    to: `${period}-28T18:15:00.250Z`,
    closed_at: `${period}-28T20:00:00.000Z`,
  }
  return { id, subject, period, ...times, sha256: hash('sha256', text, 'hex'), document: text }
}

test('of many closings of one month at the same time one is stored, and all are answered with it', async () => {
  const id = randomUUID()
  const attempts = Array.from({ length: 12 }, (_, at) => invoiceOf('many', '2026-11', { at, name: 'ä"\\\n' }, id))
  const stored = await Promise.all(attempts.map((one) => storeInvoice(client, one)))
  const [first] = stored
  expect(attempts).toContainEqual(first)
  expect(new Set(stored.map((one) => JSON.stringify(one)))).toEqual(new Set([JSON.stringify(first)]))
  expect(await readInvoicesOf(client, 'many')).toEqual([first])
  expect([
    await readInvoice(client, Reach.everybody, id),
    await readInvoice(client, Reach.everybody, randomUUID()),
  ]).toEqual([first, undefined])
})

test('an invoice whose token is known without a row, as after a kill, is stored once all the same', async () => {
  const lost = invoiceOf('lost', '2026-11', { at: 0 })
  await storeInvoice(client, lost)
  await client.command({
    query: "DELETE FROM weir.invoices WHERE subject = 'lost' SETTINGS lightweight_deletes_sync = 2",
  })
  const again = Array.from({ length: 4 }, (_, at) => invoiceOf('lost', '2026-11', { at }, lost.id))
  const stored = await Promise.all(again.map((one) => storeInvoice(client, one)))
  expect(new Set(stored.map(({ document }) => document)).size).toBe(1)
  expect(await readInvoicesOf(client, 'lost')).toHaveLength(1)
})

const journal = randomUUID()
let offset = 0

async function record(subject: string, ts: string, cost: number): Promise<void> {
  const tsMs = Date.parse(ts)
  offset += 1
  const open = encodeDecisionOpen({
    ...{ id: uuidv7(tsMs), tsMs, subject, keyId: 'k', plan: 'paid', route: 'GET /a', method: 'GET', cost, count: 1 },
    ...{ outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', deniedBy: '', limits: [] },
  })
  const line = `${open},"journal":"${journal}","seq":${offset},"partition":1,"offset":${offset}}\n`
  await insertBlock(client, { table: 'weir.decisions', dedupToken: `b:${offset}`, lines: Buffer.from(line) })
}

test('records after the cut-off are not counted, and neither are those of a later life of the topic', async () => {
  await record('cut', '2026-11-10T00:00:00Z', 3)
  const cutoff = await readCutoff(client)
  await record('cut', '2026-11-10T00:00:01Z', 5)
  const november = { fromMs: Date.parse('2026-11-01T00:00:00Z'), toMs: Date.parse('2026-12-01T00:00:00Z') }
  const units = async (by: typeof cutoff) => (await askUsageUpTo(client, 'cut', november, by)).map((one) => one.units)
  expect(await units(cutoff)).toEqual([3n])
  expect(await units(await readCutoff(client))).toEqual([8n])
  expect(await units(cutoff.map((one) => ({ ...one, topic_id: randomUUID() })))).toEqual([])
})

test('weir.invoice_lines has a row for each line and each adjustment', async () => {
  const line = { name: 'all', quantity: '21', amount: '10.50' }
  const adjustment = { for_period: '2026-10-01T00:00:00.000Z', currency: 'USD', units: '-4', amount: '-2.00' }
  const document = { prices: { currency: 'EUR' }, quote: { lines: [line] }, adjustments: [adjustment] }
  await storeInvoice(client, invoiceOf('acme', '2026-11', document))
  const lines = await client.query({
    query: "SELECT kind, name, currency, quantity, amount FROM weir.invoice_lines WHERE subject = 'acme' ORDER BY kind",
    format: 'JSONCompactEachRow',
  })
  expect(await lines.json()).toEqual([
    ['adjustment', '2026-10-01T00:00:00.000Z', 'USD', '-4', '-2.00'],
    ['line', 'all', 'EUR', '21', '10.50'],
  ])
})
