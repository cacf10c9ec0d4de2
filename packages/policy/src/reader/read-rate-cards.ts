import { type Amount, formatAmount } from '@weir/core/prices/amount.ts'
import {
  type ModelBounds,
  type RateCard,
  type RateEntry,
  type UnitPrices,
  unknownChoices,
  unpricedUnit,
} from '@weir/core/prices/rate-card.ts'
import { presetUnits, quantityMax } from '@weir/meters/meter.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import { unitNames } from './read-meters.ts'
import { amount, currency } from './read-prices.ts'
import * as t from './value-types.ts'

/** One for each currency that somebody is billed in. */
const cardsMax = 20
/** Three times the models that the public map of prices has for one provider. */
const entriesMax = 2_000
/** As many as a preset has, and some of one's own. */
const unitsMax = 18
const perMax = 1_000_000_000

/** The rate cards by name; undefined for one that is there but wrong. */
export type RateCards = ReadonlyMap<string, RateCard | undefined>

const pattern = t.matching(
  'a text of 1 to 128 printable characters, `*` for any of them',
  /^[!-~](?:[ -~]{0,126}[!-~])?$/,
)
const prices = t.entries(amount.schema, {
  plural: 'prices',
  one: 'a price',
  max: unitsMax,
  ids: {
    rule: 'a unit, cost or requests',
    pattern: new RegExp(`^(?:cost|requests)$|${unitNames.pattern.source}`),
    called: 'name',
  },
})
/** The position stays: whether a price is whole is known once its card's `per` is. */
const priceMap: t.ValueType<Fields> = {
  schema: { ...prices.schema, type: 'object', minProperties: 1 },
  read(reader, at) {
    const found = new Map(prices.read(reader, at))
    return found.size > 0 ? found : reader.problem(at, 'needs at least one price')
  },
}
const tag = t.entries(pattern.schema, { plural: 'dimensions', one: 'a dimension', max: 1, ids: unitNames })

const selectors = ['model', 'tool', 'dimension'] as const
const entry = t.object('an entry of a rate card', {
  model: t.optional('Models, `*` for any characters; `NAME@TIER` for one service tier of the response.', pattern),
  tool: t.optional('Tools of an MCP server.', pattern),
  dimension: t.optional('Values of one dimension of a meter: `{ team: "a*" }`.', {
    schema: { ...tag.schema, type: 'object' },
    read: (reader: PolicyReader, at: SourcePosition) => {
      const [found] = tag.read(reader, at)
      const value = found === undefined ? reader.problem(at, 'needs a dimension') : pattern.read(reader, found[1])
      return found === undefined || value === undefined ? undefined : ([found[0], value] as const)
    },
  }),
  from: t.required('The time from which the prices apply.', t.time),
  prices: t.required('Prices of `per` units, by unit: quoted decimals.', priceMap),
  above: t.optional(
    'Other prices for requests that use more than so many input tokens.',
    t.object('a step', {
      input_tokens: t.required('The most input tokens that the prices before are for.', t.integer(1, quantityMax)),
      prices: t.required('Prices that replace those before.', priceMap),
    }),
  ),
})

const bounds = t.object('bounds of a model', {
  context: t.optional('The most tokens of a prompt, where its bytes do not bound them.', t.integer(1, quantityMax)),
  maxOutput: t.optional('The most tokens of a response, where the request does not say.', t.integer(1, quantityMax)),
})
const models = t.entries(bounds.schema, {
  plural: 'models',
  one: 'a model',
  max: entriesMax,
  ids: { rule: '1 to 128 printable characters', pattern: /^[!-~][ -~]{0,127}$/, called: 'name' },
})

const entryList = t.list('a list of prices', t.located(entry), {
  max: entriesMax,
  wrongCount: (count) => `has ${count} prices; a rate card has at most ${entriesMax}`,
})
const card = t.object('a rate card', {
  currency: t.required('ISO 4217 code.', currency),
  per: t.withDefault('How many units a price is for. Default: 1.', t.integer(1, perMax), 1),
  unknown: t.required(
    'What happens to a request whose model has no price. refuse: 403; count: it is free, and counted as `unpriced`; default: it is priced by the entry `*`.',
    t.oneOf(unknownChoices),
  ),
  models: t.optional('Bounds of models, by patterns as of prices.', {
    schema: models.schema,
    read: (reader: PolicyReader, at: SourcePosition): ReadonlyMap<string, ModelBounds> =>
      new Map(
        [...models.each(reader, at, (_, field) => bounds.read(reader, field))].map(([name, one]) => [name, one ?? {}]),
      ),
  }),
  prices: t.required('What requests cost, by model and time.', entryList),
})

const reserved = [...new Set(Object.values(presetUnits).flat()), unpricedUnit]

/** The section `rateCards`. */
export const rateCardEntries = t.entries(card.schema, {
  plural: 'rate cards',
  one: 'a rate card',
  max: cardsMax,
  reserved: { names: reserved, message: 'this name is reserved: meters count this unit' },
  ids: unitNames,
})

/** Reads the rate cards. */
export const readRateCards = (reader: PolicyReader, at: SourcePosition): RateCards =>
  rateCardEntries.each(reader, at, (name, field): RateCard | undefined => {
    const before = reader.problemCount
    const found = card.find(reader, field)
    const { currency: code, per = 1, unknown, prices: written = [], models: known = new Map() } = found?.values ?? {}
    const entries = readEntries(reader, written, BigInt(per))
    const unknownAt = found?.fields.get('unknown')
    if (unknown === 'default' && unknownAt !== undefined && entries.every((one) => one.pattern !== '*'))
      reader.problem(unknownAt, 'needs an entry for "*", whose prices are the default')
    if (reader.problemCount > before || code === undefined || unknown === undefined) return undefined
    return { name, currency: code, unknown, entries, models: known }
  })

type WrittenEntries = NonNullable<ReturnType<typeof entryList.read>>

function readEntries(reader: PolicyReader, written: WrittenEntries, per: Amount): readonly RateEntry[] {
  const known = new Set<string>()
  return written.map(({ value, at }) => {
    const named = selectors.filter((key) => value[key] !== undefined)
    if (named.length > 1) reader.problem(at, `has ${named.join(' and ')}; an entry has at most one of them`)
    const { model, tool, dimension: [label = '', labelled] = [], from: fromMs, above } = value
    const dimension = model !== undefined ? 'model' : tool !== undefined ? 'tool' : label
    const text = model ?? tool ?? labelled ?? ''
    const id = JSON.stringify([dimension, text, fromMs])
    if (known.has(id)) reader.problem(at, 'another entry is for the same requests from the same time')
    known.add(id)
    const base = pricesPerUnit(reader, value.prices, per)
    const step = above && {
      inputTokens: above.input_tokens,
      prices: new Map([...base, ...pricesPerUnit(reader, above.prices, per)]),
    }
    return { dimension, pattern: text, fromMs, prices: base, above: step }
  })
}

function pricesPerUnit(reader: PolicyReader, written: Fields, per: Amount): UnitPrices {
  const found = new Map<string, Amount>()
  for (const [unit, at] of written) {
    const price = amount.read(reader, at)
    if (price !== undefined && price % per !== 0n) {
      reader.problem(at, `must be a multiple of ${formatAmount(per)}, because it is for ${per} units`)
    } else if (price !== undefined) found.set(unit, price / per)
  }
  return found
}
