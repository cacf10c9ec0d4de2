import type { Budget } from '@weir/core/prices/budget.ts'
import type { Fields, PolicyReader } from './policy-reader.ts'
import { amount, type Prices, tooFine } from './read-prices.ts'
import * as t from './value-types.ts'

/** More than this are a chart's business. */
const thresholdsMax = 20

const thresholds = t.checked(
  t.list('a list such as [80%, 100%]', t.located(t.percent), {
    min: 1,
    max: thresholdsMax,
    wrongCount: (count) => `has ${count} thresholds; a budget has 1 to ${thresholdsMax}`,
  }),
  (found, reader): readonly number[] => {
    for (const [index, { value, at }] of found.entries()) {
      const before = found[index - 1]?.value ?? 0
      if (value <= before) reader.problem(at, `must be higher than the previous threshold, ${before}%`)
    }
    return found.map(({ value }) => value)
  },
  { uniqueItems: true },
)

/** The key `budget` of plans and subjects, which `budgetOn` checks. */
export const budget = t.object('a budget', {
  amount: t.required('Amount per period, in the currency of the price list; a quoted decimal.', amount),
  thresholds: t.withDefault('Percentages of it that raise an alert. Default: [80%, 100%].', thresholds, [80, 100]),
})

/** The budget that is written, if it fits the price list of this name; undefined for one that is not there or wrong. */
export function budgetOn(
  reader: PolicyReader,
  fields: Fields,
  written: Budget | undefined,
  list: string | undefined,
  prices: Prices,
): { readonly budget?: Budget } {
  const at = fields.get('budget')
  if (at === undefined || written === undefined) return {}
  const digits = list === undefined ? undefined : prices.get(list)?.digits
  const fine = digits === undefined ? undefined : tooFine(written.amount, digits)
  if (list === undefined) reader.problemAtKey(at, 'needs a price list: its amount is in the currency of `prices`')
  else if (written.amount === 0n) reader.problem(at, 'must not be 0; if there is no budget, remove `budget`')
  else if (fine !== undefined) reader.problem(at, `its amount ${fine}`)
  return { budget: written }
}
