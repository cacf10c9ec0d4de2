import { type Amount, formatAmount, parseAmount } from './amount.ts'
import { currencyDigits } from './currencies.ts'
import type { PriceLine, PriceList, PriceMeasure, TierMode } from './price-list.ts'

/** A price list as an invoice keeps it: text only, so that it is the same text for ever. */
export interface WrittenPriceList {
  readonly name: string
  readonly currency: string
  readonly flat: string
  readonly minimum: string
  readonly lines: readonly {
    readonly name: string
    /** Null for all routes that no other line names. */
    readonly routes: readonly string[] | null
    readonly measure: PriceMeasure
    readonly included: string
    readonly mode: TierMode
    readonly tiers: readonly {
      readonly up_to: string | null
      readonly unit_amount: string
      readonly flat_amount: string
    }[]
  }[]
}

/** Writes a price list with everything that a price depends on. */
export function writePriceList({ name, currency, flat, minimum, lines }: PriceList): WrittenPriceList {
  return {
    ...{ name, currency, flat: formatAmount(flat), minimum: formatAmount(minimum) },
    lines: lines.map(({ name, routes = null, measure, included, mode, tiers }) => ({
      ...{ name, routes, measure, included: String(included), mode },
      tiers: tiers.map(({ upTo, unitAmount, flatAmount }) => ({
        up_to: upTo === undefined ? null : String(upTo),
        unit_amount: formatAmount(unitAmount),
        flat_amount: formatAmount(flatAmount),
      })),
    })),
  }
}

/**
 * Reads what `writePriceList` wrote; it prices everything as the list that was written.
 *
 * @throws RangeError for a text that `writePriceList` does not write.
 */
export function readPriceList({ name, currency, flat, minimum, lines }: WrittenPriceList): PriceList {
  const digits = currencyDigits(currency)
  if (digits === undefined) throw new RangeError(`the price list ${name} has the currency ${currency}`)
  const read = lines.map(
    ({ routes, included, tiers, ...line }): PriceLine => ({
      ...line,
      routes: routes ?? undefined,
      included: BigInt(included),
      tiers: tiers.map(({ up_to, unit_amount, flat_amount }) => ({
        upTo: up_to === null ? undefined : BigInt(up_to),
        unitAmount: amountOf(unit_amount),
        flatAmount: amountOf(flat_amount),
      })),
    }),
  )
  return { name, currency, digits, flat: amountOf(flat), minimum: amountOf(minimum), lines: read }
}

function amountOf(text: string): Amount {
  const amount = parseAmount(text)
  if (amount === undefined) throw new RangeError(`a price list has the amount ${text}`)
  return amount
}
