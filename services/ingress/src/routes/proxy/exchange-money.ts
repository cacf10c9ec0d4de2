import type { Units } from '@weir/core/limits/limit-store.ts'
import type { Price, RateBook } from '@weir/core/prices/rate-book.ts'
import { type RateCard, unpricedUnit, withRequest } from '@weir/core/prices/rate-card.ts'
import type { Usage } from '@weir/decide/correct/usage-settler.ts'
import type { ChargedDecision } from '@weir/decide/types.ts'
import type { AnswerMeasure } from '@weir/meters/measure-answer.ts'
import type { RequestMeasure } from '@weir/meters/measure-request.ts'
import type { MeterReader } from '@weir/meters/meter-reader.ts'

/** What a metered request costs in money, by the unit of each card that prices it; or the card that refuses it. */
interface AskedMoney {
  readonly nanos: Units
  readonly refusing?: { readonly card: RateCard; readonly value: string } | undefined
}

/** A unit of each card that prices something, and one for what a card has no price for. */
const unitsOf = (prices: readonly Price[]): readonly (readonly [unit: string, quantity: number])[] =>
  prices.flatMap(({ card, nanos, lines, unknown }) => [
    ...(lines.length > 0 || unknown !== undefined ? [[card.name, nanos] as const] : []),
    ...(unknown === undefined ? [] : [[unpricedUnit, 1] as const]),
  ])

/** The most that a request can cost; what it costs where its response changes nothing. */
export function askedMoney(
  rates: RateBook,
  { preset, readsAnswer }: MeterReader,
  { most, isUnbounded, dimensions: values }: RequestMeasure,
  { cost, atMs }: { readonly cost: number; readonly atMs: number },
): AskedMoney {
  // Of what nothing bounds it may use any unit.
  const any = isUnbounded ? (preset?.units ?? []).map((unit) => [unit, 1] as const) : []
  const prices = rates.priceAll(withRequest(new Map([...any, ...most]), cost), { atMs, values })
  const refusing = prices.find(({ card, unknown }) => unknown !== undefined && card.unknown === 'refuse')
  if (refusing !== undefined)
    return { nanos: new Map(), refusing: { card: refusing.card, value: refusing.unknown ?? '' } }
  const nanos = new Map(unitsOf(prices))
  if (!readsAnswer) return { nanos }
  const dearest = rates.mostOfAll(withRequest(most, cost), { atMs, values })
  for (const [unit, found] of dearest) if (nanos.has(unit)) nanos.set(unit, found)
  return { nanos }
}

/**
 * What an exchange cost in the end: at the prices of its decision, and where nothing is known of it, as it was held.
 * One that is refunded has only what its response used.
 */
export function withMoney(
  rates: RateBook,
  { units, basis, by }: AnswerMeasure,
  { dimensions: values }: RequestMeasure,
  { request, context }: ChargedDecision,
  isRefunded: boolean,
): Pick<Usage, 'units' | 'dims'> {
  const used = isRefunded ? withRequest(units, 0, 0) : withRequest(units, request.cost)
  const prices = rates.priceAll(used, { atMs: context.tsMs, values, answer: by })
  const known = new Map(unitsOf(prices))
  const model = prices.find((one) => one.model !== undefined)?.model
  const found = new Map(units)
  for (const { card } of prices) {
    const held = request.units?.get(card.name)
    const nanos = known.get(card.name) ?? (held === undefined ? undefined : 0)
    if (nanos !== undefined) found.set(card.name, basis === 'bound' ? (held ?? nanos) : nanos)
  }
  const unpriced = known.get(unpricedUnit) ?? (request.units?.has(unpricedUnit) ? 0 : undefined)
  if (unpriced !== undefined) found.set(unpricedUnit, unpriced)
  return model === undefined ? { units: found } : { units: found, dims: { ...context.dims, model } }
}
