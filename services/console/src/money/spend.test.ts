import type { Period } from '@weir/core/prices/forecast.ts'
import { describe, expect, it } from 'vitest'
import { nowMs, openConsole, smallPolicy } from '../testing/open-console.ts'

const line = { name: 'all', measure: 'units', tiers: [{ unit_amount: '0.5' }] }
const used = [
  { route: 'POST /v1/search', units: 30n, decisions: 3n },
  { route: '', units: 10n, decisions: 10n },
]

async function withPrices(overrides: Parameters<typeof openConsole>[0] = {}) {
  const asked: (readonly [string, Period])[] = []
  const opened = openConsole({
    askPeriodUsage: async (_reach, ...question) => {
      asked.push(question)
      return used
    },
    askCompleteness: async () => ({ completeThroughMs: nowMs - 1_500, silent: [{ journal: 'j1', sinceMs: nowMs }] }),
    ...overrides,
  })
  await opened.applyFile(`${smallPolicy}  payer: { sha256: ${'c'.repeat(64)}, scopes: [billing] }\n`)
  await opened.ask('PUT /v1/prices/api', { body: { currency: 'EUR', flat: '9.00', lines: [line] } })
  const subject = { plan: 'free', prices: 'api', timeZone: 'Asia/Kathmandu', anchor: 15 }
  expect((await opened.ask('PUT /v1/subjects/payer', { body: subject })).statusCode).toBe(201)
  return { ...opened, asked }
}

describe('GET /v1/spend', () => {
  it('prices the month that runs now in the subject’s own zone and with its anchor, and says that it is a draft', async () => {
    const { ask, asked } = await withPrices()
    const answer = await ask('/v1/spend?subject=payer')
    const from = '2026-11-14T18:15:00.000Z'
    const to = '2026-12-14T18:15:00.000Z'
    expect(asked).toEqual([['payer', { fromMs: Date.parse(from), toMs: Date.parse(to) }]])
    expect(answer.json()).toMatchObject({
      subject: 'payer',
      draft: true,
      complete_through: '2026-11-21T11:59:58.500Z',
      silent: [{ journal: 'j1' }],
      period: { from, to, time_zone: 'Asia/Kathmandu', anchor: 15 },
      quote: { currency: 'EUR', lines: [{ name: 'all', quantity: 40 }], total: '29.00' },
      // 6.739 of 30 days: 133 units of the route and 44 of no route.
      forecast: { lines: [{ quantity: 177 }], total: '97.50' },
    })
  })

  it('goes by how far the sums are complete, as known before they were read', async () => {
    const asked: string[] = []
    const { ask } = await withPrices({
      askCompleteness: async (rows) => {
        asked.push(rows)
        // Three of thirty days.
        return { completeThroughMs: Date.parse('2026-11-17T18:15:00Z'), silent: [] }
      },
      askPeriodUsage: async () => {
        asked.push('sums')
        return used
      },
    })
    const answer = await ask('/v1/spend?subject=payer')
    expect(answer.json().forecast).toMatchObject({ lines: [{ quantity: 400 }], total: '209.00' })
    expect(asked).toEqual(['decisions', 'sums'])
  })

  it('has no forecast within the first day of the month', async () => {
    const { ask } = await withPrices({ clock: { nowMs: () => Date.parse('2026-11-15T12:00:00Z') } })
    expect((await ask('/v1/spend?subject=payer')).json()).not.toHaveProperty('forecast')
  })

  it.each([
    ['?subject=acme', 404, 'neither it nor its plan free names one'],
    ['?subject=paye', 404, 'did you mean payer?'],
    ['', 400, 'subject'],
    ['?subject=payer&month=2026-10', 400, 'month'],
  ])('%s is %i', async (query, status, words) => {
    const { ask } = await withPrices()
    const answer = await ask(`/v1/spend${query}`)
    expect([answer.statusCode, answer.json().detail]).toEqual([status, expect.stringContaining(words)])
  })

  it('reports that ClickHouse is down, and does not show what it said', async () => {
    const askPeriodUsage = async () => Promise.reject(new Error('password in the message'))
    const { ask } = await withPrices({ askPeriodUsage })
    const answer = await ask('/v1/spend?subject=payer')
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5'])
    expect(answer.body).not.toContain('password')
  })
})
