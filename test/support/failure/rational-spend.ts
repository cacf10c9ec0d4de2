/**
 * What an exchange costs by a rate card, in fractions of integers and by the words of docs/money.md alone. It shares no
 * code with Weir: the two can only agree by being right.
 */
export interface SpendCard {
  readonly per: number
  readonly prices: readonly SpendEntry[]
}

export interface SpendEntry {
  readonly model: string
  readonly from: string
  /** Quoted decimals of the currency for `per` units. */
  readonly prices: Readonly<Record<string, string>>
  readonly above?: { readonly input_tokens: number; readonly prices: Readonly<Record<string, string>> }
}

/** What a supplier billed. Cached tokens are part of the input, reasoning of the output. */
export interface Billed {
  readonly asked: string
  readonly model: string
  readonly tier: string | undefined
  readonly input: number
  readonly read: number
  readonly made: number
  readonly hour: number
  readonly output: number
  readonly reasoning: number
}

type Fraction = readonly [over: bigint, under: bigint]

const decimal = (text: string): Fraction => {
  const [whole = '', part = ''] = text.split('.')
  return [BigInt(whole + part), 10n ** BigInt(part.length)]
}
const times = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * c, b * d]
const plus = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * d + c * b, b * d]

const matches = (pattern: string, model: string) =>
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&'))
      .join('.*')}$`,
  ).test(model)

/** Of the entries in force that match, that with the most letters, a name before the same with `*`, then the latest. */
function entryFor(card: SpendCard, text: string, ms: number): SpendEntry | undefined {
  const found = card.prices.filter(({ model, from }) => Date.parse(from) <= ms && matches(model, text))
  const letters = ({ model }: SpendEntry) => model.replaceAll('*', '').length
  return found.sort(
    (a, b) => letters(b) - letters(a) || a.model.length - b.model.length || Date.parse(b.from) - Date.parse(a.from),
  )[0]
}

/** Whole billionths of the currency; undefined for a model without a price. */
export function spendOf(card: SpendCard, billed: Billed, ms: number): bigint | undefined {
  const models = [billed.model, billed.asked]
  const tiered = models
    .map((model) =>
      entryFor(
        { ...card, prices: card.prices.filter(({ model: one }) => one.includes('@')) },
        `${model}@${billed.tier}`,
        ms,
      ),
    )
    .find((entry) => entry !== undefined)
  const plain = models
    .map((model) =>
      entryFor({ ...card, prices: card.prices.filter(({ model: one }) => !one.includes('@')) }, model, ms),
    )
    .find((entry) => entry !== undefined)
  const entry = (billed.tier === undefined ? undefined : tiered) ?? plain
  if (entry === undefined) return undefined
  const isAbove = entry.above !== undefined && billed.input > entry.above.input_tokens
  const prices = { ...entry.prices, ...(isAbove && entry.above?.prices) }
  // Each part pays its own price, or that of what it is part of.
  const input = prices.input_tokens
  const [read, made] = [prices.cache_read_input_tokens ?? input, prices.cache_creation_input_tokens ?? input]
  const lines: readonly (readonly [number, string | undefined])[] = [
    [billed.input - billed.read - billed.made, input],
    [billed.read, read],
    [billed.made - billed.hour, made],
    [billed.hour, prices.cache_creation_1h_input_tokens ?? made],
    [billed.output - billed.reasoning, prices.output_tokens],
    [billed.reasoning, prices.reasoning_output_tokens ?? prices.output_tokens],
  ]
  const sum = lines.reduce<Fraction>(
    (before, [quantity, price = '0']) => plus(before, times([BigInt(quantity), 1n], decimal(price))),
    [0n, 1n],
  )
  const [over, under] = times(sum, [1_000_000_000n, BigInt(card.per)])
  return (2n * over + under) / (2n * under)
}
