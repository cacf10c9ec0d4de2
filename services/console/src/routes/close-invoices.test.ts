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

  it('reports that ClickHouse is down, and an invoice that is not there', async () => {
    const { ask } = await withPrices({ readCutoff: async () => Promise.reject(new Error('password in the message')) })
    const answer = await ask('POST /v1/invoices', { body: october })
    expect([answer.statusCode, answer.body.includes('password')]).toEqual([503, false])
    expect((await ask('/v1/invoices/2ed6657d-e927-568b-95e1-2665a8aea6a2')).statusCode).toBe(404)
    expect((await ask('/v1/invoices/none')).statusCode).toBe(400)
  })
})
