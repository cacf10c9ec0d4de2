import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseAmount } from './amount.ts'
import { reachedPercents, sameBudget } from './budget.ts'

const of = (text: string) => parseAmount(text) ?? 0n
const budget = { amount: of('20.00'), thresholds: [50, 80, 100] }

it.each([
  ['9.999999999999', []],
  ['10', [50]],
  ['15.999999999999', [50]],
  ['16', [80, 50]],
  ['20', [100, 80, 50]],
  ['999999999999', [100, 80, 50]],
])('Of a budget of 20.00, %s has reached %j', (spent, reached) => {
  expect(reachedPercents(of(spent), budget)).toEqual(reached)
  expect(reachedPercents(-of(spent), budget)).toEqual([])
})

it('a percent is reached from its exact part of the budget on, in amounts of any length', () => {
  const amounts = fc.bigInt({ min: 1n, max: 10n ** 24n })
  const thresholds = Array.from({ length: 100 }, (_, at) => at + 1)
  fc.assert(
    fc.property(amounts, amounts, (amount, spent) => {
      const share = Number((spent * 100n) / amount)
      expect(reachedPercents(spent, { amount, thresholds })).toHaveLength(Math.min(100, share))
    }),
  )
})

it('equal budgets are told from others', () => {
  expect(sameBudget(budget, { ...budget, thresholds: [50, 80, 100] })).toBe(true)
  expect(sameBudget(undefined, undefined)).toBe(true)
  const others = [undefined, { ...budget, amount: 1n }, { ...budget, thresholds: [50] }]
  expect(others.map((other) => sameBudget(budget, other))).toEqual([false, false, false])
})
