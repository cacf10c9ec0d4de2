import type { Period } from '@weir/core/prices/forecast.ts'
import { expect, it } from 'vitest'
import { nowMs, openConsole, smallPolicy } from '../testing/open-console.ts'

const line = { name: 'all', measure: 'units', tiers: [{ unit_amount: '0.5' }] }

/** Two subjects pay in euros, in two zones, and one in yen; `=cmd` has a name that spreadsheets run. */
async function withSpend() {
  const asked: Period[] = []
  const opened = openConsole({
    async askMonthUsage(period) {
      asked.push(period)
      const units = period.fromMs >= Date.parse('2026-10-31') ? 40n : 20n
      const usage = [{ route: '', units, decisions: units }]
      return new Map(['near', 'far', 'tokyo', '=cmd', 'free'].map((id) => [id, usage]))
    },
    askCompleteness: async () => ({ completeThroughMs: nowMs, silent: [] }),
  })
  await opened.applyFile(smallPolicy)
  await opened.ask('PUT /v1/prices/api', { body: { currency: 'EUR', lines: [line] } })
  await opened.ask('PUT /v1/prices/jp', {
    body: { currency: 'JPY', lines: [{ ...line, tiers: [{ unit_amount: '3' }] }] },
  })
  const subjects = {
    near: { prices: 'api' },
    far: { prices: 'api', timeZone: 'Asia/Kathmandu' },
    tokyo: { prices: 'jp' },
  }
  for (const [id, more] of Object.entries({ ...subjects, '=cmd': { prices: 'api' } })) {
    const made = await opened.ask(`PUT /v1/subjects/${encodeURIComponent(id)}`, { body: { plan: 'free', ...more } })
    expect(made.statusCode).toBe(201)
  }
  return { ...opened, asked }
}

it('prices the month of every subject with a price list in its own zone, with totals by currency, change and forecast', async () => {
  const { ask, asked } = await withSpend()
  const { totals, rows } = (await ask('/v1/spend/month?period=2026-11')).json()
  const row = (subject: string) => rows.find((one: { subject: string }) => one.subject === subject)
  expect(rows.map(({ subject }: { subject: string }) => subject).toSorted()).toEqual(['=cmd', 'far', 'near', 'tokyo'])
  expect(row('far')).toMatchObject({
    from: '2026-10-31T18:15:00.000Z',
    to: '2026-11-30T18:15:00.000Z',
    amount: '20.00',
  })
  // 20.5 of 30 days: 58 whole units.
  expect(row('near')).toMatchObject({
    amount: '20.00',
    previous: '10.00',
    change: 1,
    forecast: '29.00',
    currency: 'EUR',
  })
  expect(totals).toMatchObject([
    { currency: 'JPY', amount: '120', previous: '60', change: 1 },
    { currency: 'EUR', amount: '60.00', previous: '30.00', change: 1 },
  ])
  // Of each calendar its month and the one before, once for all its subjects.
  expect(asked).toHaveLength(4)
})

it('names as many as were asked for, the highest amounts, with totals of all', async () => {
  const { ask } = await withSpend()
  const [all, one] = await Promise.all(['', '&top=1'].map((top) => ask(`/v1/spend/month?period=2026-11${top}`)))
  expect(one?.json()).toMatchObject({ left_out: 3, totals: all?.json().totals, rows: [all?.json().rows[0]] })
  expect([all?.json().left_out, one?.json().rows.length]).toEqual([0, 1])
})

it('of a month that is over there is no forecast', async () => {
  const { ask } = await withSpend()
  const { rows } = (await ask('/v1/spend/month?period=2026-09')).json()
  expect(rows[0]).toMatchObject({ change: 0, forecast: null })
})

it('is a file too, in which no name is a formula', async () => {
  const { ask } = await withSpend()
  const { headers, body } = await ask('/v1/spend/month?period=2026-10&format=csv')
  expect(headers['content-disposition']).toBe('attachment; filename="spend-2026-10.csv"')
  const [head, ...lines] = body.trim().split('\r\n')
  expect(head).toBe('subject,plan,from,to,time_zone,currency,amount,previous,change,forecast')
  expect(lines).toHaveLength(4)
  expect(body).toContain(`\r\n'=cmd,`)
})
