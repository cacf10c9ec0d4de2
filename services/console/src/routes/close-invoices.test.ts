import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createMemoryLedger } from '../testing/memory-ledger.ts'
import { nowMs, openConsole, smallPolicy } from '../testing/open-console.ts'

const line = { name: 'all', measure: 'units', tiers: [{ unit_amount: '0.5' }] }
const october = { period: '2026-10', subjects: ['payer'] }

async function withPrices(overrides: Parameters<typeof createMemoryLedger>[1] = {}) {
  const { ledger, stored } = createMemoryLedger(nowMs, overrides)
  const opened = openConsole({ ledger })
  await opened.applyFile(smallPolicy)
  await opened.ask('PUT /v1/prices/api', { body: { currency: 'EUR', lines: [line] } })
  await opened.ask('PUT /v1/subjects/payer', { body: { plan: 'free', prices: 'api' } })
  return { ...opened, stored }
}

describe('POST /v1/invoices', () => {
  it('closes a month once; the invoice is answered as it is stored, to the byte, and listed', async () => {
    const { ask, stored } = await withPrices()
    const [first, second] = [
      await ask('POST /v1/invoices', { body: october }),
      await ask('POST /v1/invoices', { body: october }),
    ]
    expect([first.statusCode, second.json()]).toEqual([200, first.json()])
    const [item] = first.json().items
    expect(item).toMatchObject({ subject: 'payer', period: '2026-10', from: '2026-10-01T00:00:00.000Z' })
    const { body, headers } = await ask(`/v1/invoices/${item.id}`)
    expect([body, headers.etag]).toEqual([stored.get(item.id)?.document, `"${hash('sha256', body, 'hex')}"`])
    expect((await ask('/v1/invoices?subject=payer')).json()).toEqual({ items: [item], next: null })
    expect((await ask('/v1/invoices?subject=acme')).json()).toEqual({ items: [], next: null })
  })

  it.each([
    [{ ...october, period: '2026-11' }, 409, 'the month ends at 2026-12-01'],
    [{ ...october, period: '2026-13' }, 400, 'period'],
    [{ ...october, grace: 'soon' }, 400, 'grace'],
    [{ ...october, subjects: [] }, 400, 'subjects'],
    [{ ...october, subjects: ['acme'] }, 404, 'no subject "acme" with a price list'],
  ])('refuses %j', async (body, status, words) => {
    const { ask, stored } = await withPrices()
    const answer = await ask('POST /v1/invoices', { body })
    expect([answer.statusCode, answer.json().detail]).toEqual([status, expect.stringContaining(words)])
    expect(stored.size).toBe(0)
  })

  it('reads completeness and the cut-off once for all subjects, in this order', async () => {
    const asked: string[] = []
    const askCompleteness = async () => {
      asked.push('completeness')
      return { completeThroughMs: nowMs, silent: [] }
    }
    const readCutoff = async () => {
      asked.push('cutoff')
      return []
    }
    const { ask } = await withPrices({ askCompleteness, readCutoff })
    await ask('PUT /v1/subjects/other', { body: { plan: 'free', prices: 'api' } })
    const answer = await ask('POST /v1/invoices', { body: { ...october, subjects: ['payer', 'other'] } })
    expect([answer.statusCode, asked]).toEqual([200, ['completeness', 'cutoff']])
  })

  it('closes the month of each subject of which nothing stands in the way, and names what does of the others', async () => {
    const { ask, stored } = await withPrices()
    for (const id of ['late', 'later']) {
      await ask(`PUT /v1/subjects/${id}`, { body: { plan: 'free', prices: 'api', anchor: 25 } })
    }
    const answer = await ask('POST /v1/invoices', { body: { ...october, subjects: ['late', 'payer', 'later'] } })
    const { items, problems } = answer.json()
    expect([answer.statusCode, items, stored.size]).toEqual([409, [expect.objectContaining({ subject: 'payer' })], 1])
    expect(new Set(problems.map(({ path }: { path: string }) => path))).toEqual(new Set(['late', 'later']))
    const one = await ask('POST /v1/invoices', { body: { ...october, subjects: ['payer', 'nobody'] } })
    expect([one.statusCode, stored.size]).toEqual([404, 1])
  })

  it('reports that ClickHouse is down, and an invoice that is not there', async () => {
    const { ask } = await withPrices({ readCutoff: async () => Promise.reject(new Error('password in the message')) })
    const answer = await ask('POST /v1/invoices', { body: october })
    expect([answer.statusCode, answer.body.includes('password')]).toEqual([503, false])
    expect((await ask('/v1/invoices/2ed6657d-e927-568b-95e1-2665a8aea6a2')).statusCode).toBe(404)
    expect((await ask('/v1/invoices/none')).statusCode).toBe(400)
  })
})
