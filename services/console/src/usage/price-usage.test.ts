import type { UsageQuery } from '@weir/api/query/usage-query.ts'
import { expect, it } from 'vitest'
import { openConsole, smallPolicy } from '../testing/open-console.ts'
import type { UsageRow } from './usage-queries.ts'

const priceList = {
  currency: 'EUR',
  flat: '1.00',
  lines: [{ name: 'search', routes: ['POST /v1/search'], measure: 'units', tiers: [{ unit_amount: '0.5' }] }],
}
const month = 'from=2026-10-01T00:00:00Z&to=2026-11-01T00:00:00Z'
const sums = { count: '9', denied: '0', allowed: '3' }
const rowsOf = ({ by, only }: UsageQuery): UsageRow[] =>
  (only.subject ?? ['acme', 'payer', 'abroad']).flatMap((subject): UsageRow[] =>
    by.includes('route')
      ? [
          { ...sums, subject, route: 'POST /v1/search', cost: '30' },
          { ...sums, subject, route: 'GET /free', cost: '999' },
        ]
      : [{ ...sums, subject, cost: '1029', ts: '2026-10-01T00:00:00Z' }],
  )

async function open() {
  const asked: UsageQuery[] = []
  const opened = openConsole({
    askUsage: async (_reach, query) => {
      asked.push(query)
      return rowsOf(query)
    },
  })
  await opened.applyFile(smallPolicy)
  await opened.ask('PUT /v1/prices/api', { body: priceList })
  await opened.ask('PUT /v1/subjects/payer', { body: { plan: 'free', prices: 'api' } })
  const abroad = { plan: 'free', prices: 'api', timeZone: 'Asia/Kathmandu' }
  await opened.ask('PUT /v1/subjects/abroad', { body: abroad })
  return { ...opened, asked }
}

it('price=true prices whole months of each subject by its list, each month by itself; without a list it is null', async () => {
  const { ask } = await open()
  const both = await ask(`/v1/usage?price=true&by=subject&step=total&subject=acme&subject=payer&${month}`)
  expect(both.json().rows).toEqual([
    expect.objectContaining({ subject: 'acme', cost: 1029, amount: null, currency: null }),
    expect.objectContaining({ subject: 'payer', cost: 1029, amount: '16.00', currency: 'EUR' }),
  ])
  const quarter = 'from=2026-08-01T00:00:00Z&to=2026-11-01T00:00:00Z'
  const three = await ask(`/v1/usage?price=true&by=subject&step=total&subject=payer&${quarter}`)
  expect(three.json().rows[0].amount).toBe('48.00')
  const byMonth = await ask(`/v1/usage?price=true&by=subject&step=month&subject=payer&${month}`)
  expect(byMonth.json().rows[0].amount).toBe('16.00')
  const own = 'from=2026-09-30T18:15:00Z&to=2026-10-31T18:15:00Z'
  const abroad = await ask(`/v1/usage?price=true&by=subject&step=total&subject=abroad&${own}`)
  expect(abroad.json().rows[0].amount).toBe('16.00')
})

it.each([
  [`by=subject&step=total&subject=abroad&${month}`, 'a month for abroad runs from 2026-09-30T18:15:00.000Z'],
  [`by=subject&step=month&subject=abroad&${month}`, 'begin on day 1 in Asia/Kathmandu'],
  ['by=subject&step=total&subject=payer&from=2026-10-02T00:00:00Z&to=2026-11-01T00:00:00Z', 'whole months'],
  ['by=subject&step=total&subject=payer&from=2026-10-01T00:00:00Z&to=2026-10-31T00:00:00Z', 'whole months'],
  ['by=subject&step=total&subject=payer&from=2020-01-01T00:00:00Z&to=2026-11-01T00:00:00Z', 'at most 36 months'],
  [`by=subject,route&step=total&${month}`, 'by=subject'],
  [`by=subject&step=day&${month}`, 'step=month'],
  [`by=subject&step=total&route=x&${month}`, 'no filter by route'],
  [`by=subject&step=total&top=3&${month}`, 'takes no top'],
  [`by=subject&step=total&format=csv&${month}`, 'format=json'],
])('price=true&%s is 400', async (query, words) => {
  const { ask } = await open()
  const answer = await ask(`/v1/usage?price=true&${query}`)
  expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringContaining(words)])
})

it('price=true takes the scope billing as well, but for what is the caller’s own', async () => {
  const { ask } = await open()
  const made = await ask('POST /v1/tokens', { body: { name: 'counter', scopes: ['usage'] } })
  const answer = await ask(`/v1/usage?price=true&by=subject&step=total&${month}`, { token: made.json().token })
  expect([answer.statusCode, answer.json().scope]).toEqual([403, 'billing'])
})
