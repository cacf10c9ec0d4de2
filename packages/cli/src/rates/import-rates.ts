import { parseJson } from '@weir/contracts/fields.ts'
import { WeirError } from '@weir/core/errors.ts'
import { type Amount, formatAmount } from '@weir/core/prices/amount.ts'
import { RateBook } from '@weir/core/prices/rate-book.ts'
import type { RateCard } from '@weir/core/prices/rate-card.ts'
import { isJsonObject, type JsonObject } from '@weir/policy/entities.ts'

/** How many units the prices of an imported card are for: as suppliers list them. */
const per = 1_000_000n
/** By the names of LiteLLM's map, without the endings for steps and tiers: the unit that each is the price of. */
const units: ReadonlyMap<string, string> = new Map([
  ['input_cost_per_token', 'input_tokens'],
  ['output_cost_per_token', 'output_tokens'],
  ['cache_read_input_token_cost', 'cache_read_input_tokens'],
  ['cache_creation_input_token_cost', 'cache_creation_input_tokens'],
  ['cache_creation_input_token_cost_above_1hr', 'cache_creation_1h_input_tokens'],
  ['output_cost_per_reasoning_token', 'reasoning_output_tokens'],
  ['input_cost_per_request', 'requests'],
])

/** The number as it is written, in 10^-12, without arithmetic of floating point; undefined for what is finer. */
function exact(value: unknown): Amount | undefined {
  const [, digits = '', places = '', exponent = '0'] = /^(\d+)(?:\.(\d+))?(?:e([-+]\d+))?$/.exec(String(value)) ?? []
  const shift = 12 - places.length + Number(exponent)
  if (typeof value !== 'number' || digits === '' || shift > 24) return undefined
  const whole = BigInt(digits + places)
  if (shift >= 0) return whole * 10n ** BigInt(shift)
  const step = 10n ** BigInt(-shift)
  return whole % step === 0n ? whole / step : undefined
}

/** The entries of one model: its prices, and those of each tier. */
function entriesOf(model: string, body: JsonObject, from: string): readonly JsonObject[] {
  const base = new Map<string, string>()
  const above = new Map<string, string>()
  const tiers = new Map<string, Map<string, string>>()
  let step = 0
  for (const [name, value] of Object.entries(body)) {
    const [, key = '', thousands, tier] = /^(.+?)(?:_above_(\d+)k_tokens|_(flex|priority))?$/.exec(name) ?? []
    const [unit, price] = [units.get(key), exact(value)]
    if (unit === undefined || price === undefined) continue
    if (tier !== undefined) tiers.set(tier, (tiers.get(tier) ?? new Map()).set(unit, formatAmount(price * per)))
    else (thousands === undefined ? base : above).set(unit, formatAmount(price * per))
    if (thousands !== undefined) step = Number(thousands) * 1_000
  }
  if (base.size === 0) return []
  const stepped = step === 0 ? {} : { above: { input_tokens: step, prices: Object.fromEntries(above) } }
  return [
    { model, from, prices: Object.fromEntries(base), ...stepped },
    ...[...tiers].map(([tier, own]) => {
      return { model: `${model}@${tier}`, from, prices: Object.fromEntries([...base, ...own]) }
    }),
  ]
}

/** Suppliers as `litellm_provider` has them, empty for all; and the RFC 3339 time from which their prices apply. */
type RatesWanted = { readonly providers: readonly string[]; readonly from: string }

/**
 * Returns the section `rateCards` of LiteLLM's map of models (`model_prices_and_context_window.json`), with one card
 * `usd`. The prefix of a single supplier is left out of its models. Throws `IMPORT_REFUSED` for another file, and where
 * no model is left.
 */
export function importRates(text: string, { providers, from }: RatesWanted): JsonObject {
  const map = parseJson(text)
  const [prices, models]: [JsonObject[], Record<string, JsonObject>] = [[], {}]
  for (const [model, body] of isJsonObject(map) ? Object.entries(map) : []) {
    if (model === 'sample_spec' || !isJsonObject(body)) continue
    if (providers.length > 0 && !providers.includes(String(body.litellm_provider))) continue
    const prefix = providers.length === 1 ? `${providers[0]}/` : ''
    const name = model.startsWith(prefix) ? model.slice(prefix.length) : model
    const entries = entriesOf(name, body, from)
    const [context, maxOutput] = [body.max_input_tokens, body.max_output_tokens].map((most) =>
      Number.isSafeInteger(most) && Number(most) > 0 ? Number(most) : undefined,
    )
    const bounds = { ...(context && { context }), ...(maxOutput && { maxOutput }) }
    prices.push(...entries)
    if (entries.length > 0 && Object.keys(bounds).length > 0) models[name] = bounds
  }
  if (prices.length === 0) {
    const which = providers.length === 0 ? 'models' : `models of ${providers.join(', ')}`
    const advice = "Give LiteLLM's model_prices_and_context_window.json, and providers that it has."
    throw new WeirError('IMPORT_REFUSED', `The file has no prices of ${which}. ${advice}`)
  }
  return { usd: { currency: 'USD', per: Number(per), unknown: 'refuse', models, prices } }
}

/** Returns the prices, of a million units, of the file's models that cards in force have otherwise at a time. */
export function differingRates(cards: readonly RateCard[], file: RateCard, atMs: number) {
  const book = new RateBook(cards.filter(({ currency }) => currency === file.currency))
  const text = (price: Amount = 0n) => formatAmount(price * per)
  return file.entries.flatMap(({ pattern: model, prices }) => {
    const any = new Map(Array.from(prices.keys(), (unit) => [unit, 1]))
    return book.priceAll(any, { atMs, values: new Map([['model', model]]) }).flatMap(({ card: { name }, lines }) => {
      const known = lines.find(({ entry }) => entry.dimension === 'model')?.entry.prices ?? prices
      return [...new Map([...known, ...prices]).keys()]
        .filter((unit) => known.get(unit) !== prices.get(unit))
        .map((unit) => ({ card: name, model, unit, now: text(known.get(unit)), file: text(prices.get(unit)) }))
    })
  })
}
