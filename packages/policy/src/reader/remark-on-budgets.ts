import { formatAmount, parseNanos } from '@weir/core/prices/amount.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import type { Policy } from '../policy.ts'
import type { TextReader } from './text-reader.ts'
import * as t from './value-types.ts'

/** The key `budget` of plans and subjects, which raised alerts before 0.11. `remarkOnBudgets` says what does now. */
export const formerBudget = t.retired('a limit of money raises its alerts; weir check prints it', (reader, at) => {
  void reader.formerBudgets.push(at)
})

/** Names of limits and units have 64 characters. */
const nameOf = (text: string) => text.slice(0, 64)

/** The largest size of a limit of money. */
const sizeMax = '9000000'

/** Remarks on the budgets of a file: the YAML that raises the same alerts, and what that does not carry over. */
export function remarkOnBudgets(reader: TextReader, { plans, prices, subjects }: Policy): void {
  const [first] = reader.formerBudgets
  if (first === undefined) return
  const added = { rateCards: new Map(), limits: new Map(), plans: new Map(), subjects: new Map<string, string>() }
  const limitsOf = new Map<string, Set<string>>()
  const lost = new Set<string>()
  // Those of plans come first: a subject's own is its version of its plan's limit.
  for (const at of reader.formerBudgets) {
    const name = String(at.parent?.key)
    const subject = at.parent?.parent?.key === 'subjects' ? subjects.get(name) : undefined
    const plan = subject?.plan ?? plans.get(name)
    const list = prices.get(subject?.prices ?? plan?.prices ?? '')
    if (plan === undefined || list === undefined) continue
    const { card, dropped } = rateCardOf(list)
    for (const one of dropped) lost.add(`prices.${list.name}: ${one}`)
    if (card === undefined) continue
    const { amount, thresholds = ['80%', '100%'] } = Object.fromEntries(reader.written(at))
    const isTooMuch = parseNanos(String(amount)) === undefined
    if (isTooMuch) lost.add(`${name}: what exceeds ${sizeMax}`)
    const unit = nameOf(`${list.currency}_${list.name}`.toLowerCase().replaceAll(/[^a-z0-9]/g, '_'))
    const limit = nameOf(subject?.prices === undefined ? `budget-${plan.name}` : `budget-${plan.name}-${list.name}`)
    const base = `algorithm: fixed_window, unit: ${unit}, period: month, mode: shadow`
    const own = `size: "${isTooMuch ? sizeMax : amount}", thresholds: ${JSON.stringify(thresholds)}`
    added.rateCards.set(unit, card)
    if (subject === undefined) added.limits.set(limit, `{ ${base}, ${own} }`)
    else added.subjects.set(name, `{ plan: "${plan.name}", limits: { ${limit}: { ${own} } } }`)
    // Other subjects of the plan are counted too, which alerts no one.
    if (!added.limits.has(limit)) added.limits.set(limit, `{ ${base}, size: "${sizeMax}", thresholds: [] }`)
    const ofPlan = (limitsOf.get(plan.name) ?? new Set()).add(limit)
    limitsOf.set(plan.name, ofPlan)
    added.plans.set(plan.name, `{ limits: [${[...ofPlan].join(', ')}] }`)
  }
  const yaml = Object.entries(added).flatMap(([section, entries]) => {
    const lines = Array.from(entries, ([name, body]) => `  ${JSON.stringify(name)}: ${body}`)
    return lines.length === 0 ? [] : [`${section}:`, ...lines]
  })
  const what = 'budgets do nothing since 0.11; remove them'
  const notCarried = lost.size === 0 ? [] : [`Not carried over: ${[...lost].join('; ')}`]
  reader.remark(first, [yaml.length === 0 ? what : `${what}, and add:`, ...yaml, ...notCarried].join('\n'))
}

/** The rate card that is nearest to a list, and what it lacks: it prices each request by itself, on all routes. */
function rateCardOf({ currency, flat, minimum, lines }: PriceList) {
  const line = lines.find(({ routes }) => routes === undefined) ?? lines[0]
  const [tier] = line?.tiers ?? []
  const has = { flat: flat > 0n, minimum: minimum > 0n, 'lines with routes': lines.some(({ routes }) => routes) }
  if (line === undefined || tier === undefined) return { card: undefined, dropped: trueOf(has) }
  const price = formatAmount(tier.unitAmount / (line.packaging?.per ?? 1n))
  const entry = `{ from: 2026-01-01T00:00:00Z, prices: { ${line.measure === 'units' ? 'cost' : 'requests'}: "${price}" } }`
  const dropped = trueOf({
    ...has,
    included: line.included > 0n,
    'tiers after the first': line.tiers.length > 1,
    flat_amount: tier.flatAmount > 0n,
    round: line.packaging !== undefined,
  })
  return { card: `{ currency: ${currency}, unknown: count, prices: [${entry}] }`, dropped }
}

const trueOf = (found: Readonly<Record<string, boolean>>) => Object.keys(found).filter((name) => found[name])
