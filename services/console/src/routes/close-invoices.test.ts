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

  it('closes nothing while the history lacks the newest change, which may be of the month', async () => {
    const { ask, store, stored } = await withPrices({ hasChange: async (id) => id !== october.period })
    Object.assign(store, { checkpoint: { offset: 1n, id: october.period } })
    const answer = await ask('POST /v1/invoices', { body: october })
    expect([answer.statusCode, answer.body, stored.size]).toEqual([
      503,
      expect.stringContaining('the newest change'),
      0,
    ])
    expect((await ask('/v1/invoices/subjects?period=2026-10')).statusCode).toBe(503)
    Object.assign(store, { checkpoint: { offset: 2n, id: 'copied' } })
    expect((await ask('POST /v1/invoices', { body: october })).statusCode).toBe(200)
  })

  it.each([
    [{ ...october, period: '2026-11' }, 409, 'the month ends at 2026-12-01'],
    [{ ...october, period: '2026-13' }, 400, 'period'],
    [{ ...october, grace: 'soon' }, 400, 'grace'],
    [{ ...october, subjects: [] }, 400, 'subjects'],
    [{ ...october, subjects: ['nobody'] }, 409, 'neither the policy nor its history has this subject'],
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
  })

  it('closes every month of a request of which one has fewer than no units, as corrections of a lost decision leave it', async () => {
    const askUsageUpTo = async (subject: string) => [
      { route: '', units: subject === 'payer' ? -6n : 2n, decisions: 1n },
    ]
    const { ask } = await withPrices({ askUsageUpTo })
    await ask('PUT /v1/subjects/other', { body: { plan: 'free', prices: 'api' } })
    const answer = await ask('POST /v1/invoices', { body: { ...october, subjects: ['payer', 'other'] } })
    expect([answer.statusCode, answer.json().items?.length]).toEqual([200, 2])
    const { quote } = (await ask(`/v1/invoices/${answer.json().items[0].id}`)).json()
    expect(quote).toMatchObject({ lines: [{ quantity: '-6', amount: '0.00' }], total: '0.00' })
  })

  it('closes the others of a request where a subject is unknown, and says of whom there is nothing to invoice', async () => {
    async function* readPoliciesIn(subject: string) {
      const before = createMemoryLedger(nowMs).ledger.readPoliciesIn(subject, { fromMs: 0, toMs: 1 })
      if (subject === 'acme') yield { entities: [{ kind: 'subject', name: 'acme', body: '{}' }] }
      else yield* before
    }
    const { ask } = await withPrices({ readPoliciesIn })
    const answer = await ask('POST /v1/invoices', { body: { ...october, subjects: ['nobody', 'acme', 'payer'] } })
    expect([answer.statusCode, answer.json()]).toMatchObject([
      409,
      {
        items: [{ subject: 'payer' }],
        nothing: [{ path: 'acme', message: 'the subject had no price list in the month' }],
        problems: [{ path: 'nobody' }],
      },
    ])
  })

  it('reports that ClickHouse is down, and an invoice that is not there', async () => {
    const { ask } = await withPrices({ readCutoff: async () => Promise.reject(new Error('password in the message')) })
    const answer = await ask('POST /v1/invoices', { body: october })
    expect([answer.statusCode, answer.body.includes('password')]).toEqual([503, false])
    expect((await ask('/v1/invoices/2ed6657d-e927-568b-95e1-2665a8aea6a2')).statusCode).toBe(404)
    expect((await ask('/v1/invoices/none')).statusCode).toBe(400)
  })
})
