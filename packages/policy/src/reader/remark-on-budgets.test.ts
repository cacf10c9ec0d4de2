import { expect, test } from 'vitest'
import { parsePolicy } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

const line = (more: string) => `{ name: all, measure: units, ${more} }`
const simple = line('tiers: [{ unit_amount: "0.01" }]')

/** The remarks on a policy, and what parsing the YAML that they print says. */
function remarksOn(text: string) {
  const read = parsePolicy(`version: 1\n${text}`, 'weir.yaml')
  if (read.kind !== 'policy') throw new Error(read.problems.map(formatProblem).join('\n'))
  const lines = read.remarks.map(formatProblem).join('\n').split('\n')
  const yaml = lines.slice(1).filter((one) => !one.startsWith('Not carried over'))
  return { lines, again: parsePolicy(['version: 1', ...yaml].join('\n'), 'printed') }
}

test('A budget is read and does nothing, and the remark is the limit that raises its alerts', () => {
  const { lines, again } = remarksOn(`
prices: { api: { currency: EUR, lines: [${simple}] } }
plans: { paid: { limits: [], prices: api, budget: { amount: "20.00", thresholds: [50%, 100%] } } }`)
  expect(lines).toEqual([
    'weir.yaml:4:43  plans.paid.budget: budgets do nothing since 0.11; remove them, and add:',
    'rateCards:',
    '  "eur_api": { currency: EUR, unknown: count, prices: [{ from: 2026-01-01T00:00:00Z, prices: { cost: "0.01" } }] }',
    'limits:',
    '  "budget-paid": { algorithm: fixed_window, unit: eur_api, period: month, mode: shadow, size: "20.00", thresholds: ["50%","100%"] }',
    'plans:',
    '  "paid": { limits: [budget-paid] }',
  ])
  expect(again.kind === 'policy' && again.remarks).toEqual([])
})

test("Budgets of subjects are their own versions of their plans' limits", () => {
  const { lines, again } = remarksOn(`
prices: { api: { currency: EUR, lines: [${simple}] }, Yen-2026: { currency: JPY, lines: [${simple}] } }
plans: { paid: { limits: [], prices: api, budget: { amount: "20.00" } }, free: { limits: [], prices: api } }
subjects:
  acme: { plan: paid, budget: { amount: "5.00", thresholds: [90%] } }
  bolt: { plan: paid, prices: Yen-2026, budget: { amount: "7" } }
  "cars & co": { plan: free, budget: { amount: "99999999.00" } }`)
  expect(lines.at(-1)).toBe('Not carried over: cars & co: what exceeds 9000000')
  if (again.kind !== 'policy') throw new Error(again.problems.map(formatProblem).join('\n'))
  const limitsOf = (id: string) => {
    const { plan, ownLimits } = again.policy.subjects.get(id) ?? { plan: { limits: [] }, ownLimits: new Map() }
    return plan.limits.map(({ name }) => {
      const { size, currency, thresholds, mode } = ownLimits.get(name) ?? again.policy.limits.get(name)
      return [name, size / 1_000_000_000, currency, thresholds.map(({ percent }: { percent: number }) => percent), mode]
    })
  }
  expect(limitsOf('acme')).toEqual([
    ['budget-paid', 5, 'EUR', [90], 'shadow'],
    ['budget-paid-Yen-2026', 9_000_000, 'JPY', [], 'shadow'],
  ])
  expect(limitsOf('bolt')).toEqual([
    ['budget-paid', 20, 'EUR', [80, 100], 'shadow'],
    ['budget-paid-Yen-2026', 7, 'JPY', [80, 100], 'shadow'],
  ])
  expect(limitsOf('cars & co')).toEqual([['budget-free', 9_000_000, 'EUR', [80, 100], 'shadow']])
})

test.each([
  [`flat: "9", minimum: "10", lines: [${simple}]`, 'cost: "0.01"', 'prices.api: flat; prices.api: minimum'],
  [`lines: [${line('routes: [GET /a], tiers: [{ unit_amount: "2" }]')}]`, 'cost: "2"', 'prices.api: lines with routes'],
  [
    `lines: [${line('included: 5, tiers: [{ up_to: 9, unit_amount: "2", flat_amount: "1" }, { unit_amount: "1" }]')}]`,
    'cost: "2"',
    'prices.api: included; prices.api: tiers after the first; prices.api: flat_amount',
  ],
  [
    'lines: [{ name: n, measure: decisions, per: 1000, tiers: [{ unit_amount: "2" }] }]',
    'requests: "0.002"',
    'prices.api: round',
  ],
  ['flat: "9", lines: []', undefined, 'prices.api: flat'],
])('The remark names what a rate card does not have of a price list with %s', (list, price, lost) => {
  const { lines, again } = remarksOn(`
routes: [{ match: GET /a }]
prices: { api: { currency: EUR, ${list} } }
plans: { paid: { limits: [], prices: api, budget: { amount: "20.00" } } }`)
  expect(lines.at(-1)).toBe(`Not carried over: ${lost}`)
  expect([again.kind, lines.find((one) => one.includes('eur_api": '))]).toEqual([
    'policy',
    price === undefined ? undefined : expect.stringContaining(`prices: { ${price} }`),
  ])
})

test('A budget that says anything else stops nothing, one without a price list too', () => {
  const { lines } = remarksOn(
    'plans: { paid: { limits: [], budget: [1] } }\nsubjects: { a: { plan: paid, budget: no } }',
  )
  expect(lines).toEqual(['weir.yaml:2:30  plans.paid.budget: budgets do nothing since 0.11; remove them'])
})
