import { hash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { askGaps, askUsageUpTo, readCutoff } from '@weir/clickhouse/billing-queries.ts'
import { type ClickHouseClient, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { readInvoice, readInvoicesOf, storeInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { migrate, readMigrations } from '@weir/clickhouse/migrate.ts'
import { type Closing, closeMonth, type Ledger } from '@weir/console/close-month.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Invoice } from '@weir/core/prices/invoice.ts'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { pricesOf } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningServer, startServer } from '../support/servers/start-server.ts'

let server: RunningServer
let client: ClickHouseClient
beforeAll(async () => {
  server = await startServer(clickhouseServer)
  client = connectClickhouse(server.address, 'test')
  await migrate(client, await readMigrations(join(projectRoot, 'infra/clickhouse/migrations')))
})
afterAll(async () => {
  await client?.close()
  await server?.close()
})

const policy = (id: string) =>
  requirePolicy(
    `
version: 1
limits: { m: { algorithm: fixed_window, size: 1, window: 1m } }
prices:
  api: { currency: EUR, flat: "5.00", lines: [{ name: all, measure: units, tiers: [{ unit_amount: "0.5" }] }] }
plans: { paid: { limits: [m], prices: api } }
subjects: { ${id}: { plan: paid, timeZone: Asia/Kathmandu } }
`,
    'test',
  )

function closing(id: string, month: string): Closing {
  const read = policy(id)
  const subject = read.subjects.get(id) ?? expect.fail('no subject')
  const prices = pricesOf(read, subject) ?? expect.fail('no prices')
  return { subject, prices, month, graceMs: 3_600_000, acceptGaps: undefined }
}

const ledger = (): Ledger => ({
  askCompleteness: async () => ({ completeThroughMs: Date.parse('2027-03-01T00:00:00Z'), silent: [] }),
  askGaps: (period) => askGaps(client, topics.decisions, period),
  readCutoff: () => readCutoff(client),
  askUsageUpTo: (...question) => askUsageUpTo(client, ...question),
  readInvoice: (id) => readInvoice(client, id),
  readInvoicesOf: (subject) => readInvoicesOf(client, subject),
  storeInvoice: (invoice) => storeInvoice(client, invoice),
})

const close = async (id: string, month: string, nowMs = Date.parse('2027-02-01T00:00:00Z')) => {
  const closed = await closeMonth(ledger(), closing(id, month), nowMs)
  if (closed.kind === 'open') throw new Error(closed.because.join('; '))
  const { document, sha256 } = closed.invoice
  expect(hash('sha256', document, 'hex')).toBe(sha256)
  const invoice: Invoice = JSON.parse(document)
  return { document, invoice }
}

const journal = randomUUID()
let offset = 0

/** A block as metering inserts it: the same call again is the same block. */
function block(subject: string, ...records: readonly { readonly ts: string; readonly cost: number }[]) {
  const text = records.map(({ ts, cost }) => {
    const tsMs = Date.parse(ts)
    offset += 1
    const open = encodeDecisionOpen({
      ...{ id: uuidv7(tsMs), tsMs, subject, keyId: 'k', plan: 'paid', route: 'GET /a', method: 'GET', cost, count: 1 },
      ...{ outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', deniedBy: '', limits: [] },
    })
    return `${open},"journal":"${journal}","seq":${offset},"partition":1,"offset":${offset}}\n`
  })
  const request = { table: 'weir.decisions', dedupToken: `b:${offset}`, lines: Buffer.from(text.join('')) }
  return () => insertBlock(client, request)
}

test('a closed month is equal to the byte after a kill, a replay and late records, which the next invoice adjusts', async () => {
  const inserted = block('acme', { ts: '2026-11-10T00:00:00Z', cost: 20 }, { ts: '2026-11-30T18:14:59.999Z', cost: 1 })
  await inserted()
  const november = await close('acme', '2026-11')
  expect(november.invoice.period).toMatchObject({ from: '2026-10-31T18:15:00.000Z', to: '2026-11-30T18:15:00.000Z' })
  expect([november.invoice.quote.total, november.invoice.units]).toEqual(['15.50', '21'])

  await server.kill('SIGKILL')
  await server.restart()
  await inserted()
  const late = block('acme', { ts: '2026-11-11T00:00:00Z', cost: 4 }, { ts: '2026-12-05T00:00:00Z', cost: 2 })
  await late()
  expect((await close('acme', '2026-11')).document).toBe(november.document)

  const december = await close('acme', '2026-12')
  expect(december.invoice.quote.total).toBe('6.00')
  expect(december.invoice.adjustments).toEqual([
    { for_period: november.invoice.period.from, currency: 'EUR', units: '4', decisions: '1', amount: '2.00' },
  ])
  expect(december.invoice.totals).toEqual([{ currency: 'EUR', amount: '8.00' }])
  await late()
  expect((await close('acme', '2027-01', Date.parse('2027-02-02T00:00:00Z'))).invoice.adjustments).toEqual([])
  expect((await close('acme', '2026-12')).document).toBe(december.document)
})

test('of many closings of one month at the same time one stays, and all are answered with it', async () => {
  await block('many', { ts: '2026-11-10T00:00:00Z', cost: 3 })()
  // Each would be another document: by its time, and by what comes in between.
  const documents = await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      await block('many', { ts: '2026-11-12T00:00:00Z', cost: 1 })()
      return (await close('many', '2026-11', Date.parse('2027-01-01T00:00:00Z') + at)).document
    }),
  )
  expect(new Set(documents).size).toBe(1)
  const [stored] = await readInvoicesOf(client, 'many')
  expect([stored?.document, (await readInvoicesOf(client, 'many')).length]).toEqual([documents[0], 1])
})

test('records after the cut-off are not counted, and neither are those of a later life of the topic', async () => {
  await block('cut', { ts: '2026-11-10T00:00:00Z', cost: 3 })()
  const cutoff = await readCutoff(client)
  await block('cut', { ts: '2026-11-10T00:00:01Z', cost: 5 })()
  const november = { fromMs: Date.parse('2026-11-01T00:00:00Z'), toMs: Date.parse('2026-12-01T00:00:00Z') }
  const units = async (by: typeof cutoff) => (await askUsageUpTo(client, 'cut', november, by)).map((one) => one.units)
  expect(await units(cutoff)).toEqual([3n])
  expect(await units(await readCutoff(client))).toEqual([8n])
  expect(await units(cutoff.map((one) => ({ ...one, topic_id: randomUUID() })))).toEqual([])
})

test('weir.invoice_lines has a row for each line and each adjustment', async () => {
  const lines = await client.query({
    query:
      "SELECT period, kind, name, currency, quantity, amount FROM weir.invoice_lines WHERE subject = 'acme' ORDER BY period, kind",
    format: 'JSONCompactEachRow',
  })
  expect(await lines.json()).toEqual([
    ['2026-11', 'line', 'all', 'EUR', '21', '10.50'],
    ['2026-12', 'adjustment', '2026-10-31T18:15:00.000Z', 'EUR', '4', '2.00'],
    ['2026-12', 'line', 'all', 'EUR', '2', '1.00'],
    ['2027-01', 'line', 'all', 'EUR', '0', '0.00'],
  ])
})
