import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, it } from 'vitest'
import { findReached, monthsToPrice, payerOf } from './budgets.ts'

const policy = requirePolicy(
  `version: 1
prices:
  api: { currency: EUR, flat: "1.00", lines: [{ name: all, measure: units, tiers: [{ unit_amount: "0.01" }] }] }
  yen: { currency: JPY, lines: [] }
plans:
  free: { limits: [] }
  paid: { limits: [], prices: api, budget: { amount: "20.00", thresholds: [50%, 80%, 100%] } }
subjects:
  nobody: { plan: free }
  acme: { plan: paid, timeZone: Asia/Kathmandu, anchor: 15 }
  bolt: { plan: paid, budget: { amount: "5" } }
  cars: { plan: paid, prices: yen }`,
  'weir.yaml',
)
const payer = (id: string) => {
  const found = payerOf(policy, id)
  if (found === undefined) throw new Error(`${id} has no budget`)
  return found
}
const units = (count: bigint) => [{ route: 'GET /', units: count, decisions: 1n }]
const ms = (time: string) => Date.parse(time)

it('a budget is of the subject, else of its plan where it has the price list of that', () => {
  expect([payer('acme').budget.amount, payer('bolt').budget]).toEqual([
    20_000_000_000_000n,
    { amount: 5_000_000_000_000n, thresholds: [80, 100] },
  ])
  expect(
    [payerOf(policy, 'nobody'), payerOf(policy, 'cars'), payerOf(policy, 'gone')].every((one) => one === undefined),
  ).toBe(true)
})

it('says what the period costs, flat amounts too, and claims each threshold by the month and the budget', () => {
  const [period] = monthsToPrice(payer('acme').subject, ms('2026-11-21T12:00:00Z'))
  if (period === undefined) throw new Error('no period runs')
  expect(findReached(payer('acme'), period, units(899n))).toBeUndefined()
  expect(findReached(payer('acme'), period, units(1_500n))).toEqual({
    kind: 'budget',
    subject: 'acme',
    isRecurring: false,
    lifetimeMs: (31 * 24 + 6) * 3_600_000,
    startMs: ms('2026-11-14T18:15:00Z'),
    endMs: ms('2026-12-14T18:15:00Z'),
    thresholds: [80, 50].map((percent) => ({
      percent,
      key: `quota_alert:{acme}:budget:EUR20%2E00:budget${percent}:2026-11`,
    })),
    about: { prices: 'api', currency: 'EUR', budget: '20.00', amount: '16.00', period: '2026-11' },
  })
  expect(findReached(payer('acme'), period, units(-1n))).toBeUndefined()
})

it('prices the month before as well for six hours', () => {
  const names = (now: string) => monthsToPrice(payer('bolt').subject, ms(now)).map(({ name }) => name)
  expect(names('2026-11-01T05:59:59Z')).toEqual(['2026-11', '2026-10'])
  expect(names('2026-11-01T06:00:00Z')).toEqual(['2026-11'])
})
