/** Decimal places of an amount. Stripe's `unit_amount_decimal` has as many. */
const places = 12
const scale = 10n ** BigInt(places)

/** An exact amount of money, in whole numbers of 10^-12 of the currency's unit. */
export type Amount = bigint

/** The form of amounts: up to 12 digits before the point and 12 after it, without a sign. */
export const amountPattern = /^(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,12}))?$/

/** Reads a decimal text such as `0.0008`; undefined for anything else. */
export function parseAmount(text: string): Amount | undefined {
  const [, whole, fraction = ''] = amountPattern.exec(text) ?? []
  return whole === undefined ? undefined : BigInt(whole) * scale + BigInt(fraction.padEnd(places, '0'))
}

/** Amounts of nano-units are thousandths. */
const perNano = 1_000n

/** Reads a decimal text as whole nano-units; undefined for anything else, and beyond 9,000,000. */
export function parseNanos(text: string): number | undefined {
  const amount = parseAmount(text)
  const isWhole = amount !== undefined && amount % perNano === 0n && amount <= nanosMax * perNano
  return isWhole ? Number(amount / perNano) : undefined
}

/** The largest size of a limit, `unitsMax` of the policy: up to here counts in Redis are exact. */
const nanosMax = 9_000_000_000_000_000n

/** Writes whole nano-units as an amount, with at least two places: `0.0108`, `20.00`. */
export const formatNanos = (nanos: number | bigint | string): string =>
  formatAmount(BigInt(typeof nanos === 'number' ? Math.round(nanos) : nanos) * perNano, 2)

/** Writes an amount exactly, with at least `digits` places: `0.0008`, and `49.00` with 2. */
export function formatAmount(amount: Amount, digits = 0): string {
  const size = amount < 0n ? -amount : amount
  const fraction = (size % scale).toString().padStart(places, '0').replace(/0+$/, '').padEnd(digits, '0')
  return `${amount < 0n ? '-' : ''}${size / scale}${fraction === '' ? '' : `.${fraction}`}`
}

/** Rounds to `digits` places, half away from zero. */
export function roundAmount(amount: Amount, digits: number): Amount {
  const step = 10n ** BigInt(places - digits)
  const size = amount < 0n ? -amount : amount
  const rounded = ((size + step / 2n) / step) * step
  return amount < 0n ? -rounded : rounded
}
