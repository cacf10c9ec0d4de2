import type { Units } from '../limits/limit-store.ts'
import {
  linesOf,
  type ModelBounds,
  mostNanosOf,
  nanosOf,
  type RateCard,
  type RateEntry,
  type RateLine,
} from './rate-card.ts'

/** What a request is, to those that price it. */
export interface PricedRequest {
  /** The moment of its decision: prices from later on do not apply. */
  readonly atMs: number
  /** Values by the names of dimensions, as the request says them. */
  readonly values: ReadonlyMap<string, string>
  /** Model and service tier as the response says them. */
  readonly answer?: { readonly model?: string | undefined; readonly tier?: string | undefined } | undefined
}

/** What one card makes of a request. */
export interface Price {
  readonly card: RateCard
  /** Whole nano-units of the card's currency. */
  readonly nanos: number
  readonly lines: readonly RateLine[]
  /** It used something that the card prices by a value that no entry has: the value, empty for none. */
  readonly unknown: string | undefined
  /** The model by which it was priced, where that is not the one that it asked for. */
  readonly model: string | undefined
}

/** Texts whose entries are remembered: callers invent some. Beyond them the remembering starts again. */
const knownMax = 1_000
/** Every request has these; using them says nothing about a model. */
const unitsOfAll: readonly string[] = ['cost', 'requests']

/** The pattern of what no other matches: it has no letters, so it comes last. */
const fallback = '*'

type Test = (text: string) => boolean

interface Pattern {
  readonly tests: Test
  /** The same before its last `@`, where it is for a service tier. */
  readonly untiered: Test | undefined
  /** The latest first. */
  readonly entries: readonly RateEntry[]
}

/** Whether a text is what a pattern with `*` says, in one pass: callers choose the text. */
function testOf(pattern: string): Test {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return (text) => text === first
  return (text) => {
    let at = text.startsWith(first) ? first.length : -1
    for (const part of others) {
      const found = at < 0 ? -1 : text.indexOf(part, at)
      at = found < 0 ? -1 : found + part.length
    }
    return at >= 0 && text.length - last.length >= at && text.endsWith(last)
  }
}

function patternOf(text: string, entries: readonly RateEntry[]): Pattern {
  const at = text.lastIndexOf('@')
  return {
    tests: testOf(text),
    untiered: at > 0 ? testOf(text.slice(0, at)) : undefined,
    entries: entries.toSorted((a, b) => b.fromMs - a.fromMs),
  }
}

/** The most letters first; of as many, one without `*`. */
const bySpecificity = (a: string, b: string) =>
  b.replaceAll('*', '').length - a.replaceAll('*', '').length || a.length - b.length || (a < b ? -1 : 1)

const inForce = ({ entries }: Pattern, atMs: number) => entries.find(({ fromMs }) => fromMs <= atMs)

/** The entries of one dimension, by the most specific pattern first. */
class DimensionRates {
  readonly #patterns: readonly Pattern[]
  readonly #known = new Map<string, readonly Pattern[]>()
  /** The units that are priced by it, but for those that every request has. */
  readonly units: readonly string[]

  constructor(entries: readonly RateEntry[], hasFallback: boolean) {
    const byText = Map.groupBy(entries, ({ pattern }) => pattern)
    const texts = [...byText.keys()].filter((text) => hasFallback || text !== fallback).sort(bySpecificity)
    this.#patterns = texts.map((text) => patternOf(text, byText.get(text) ?? []))
    const priced = entries.flatMap(({ prices, above }) => [...prices.keys(), ...(above?.prices.keys() ?? [])])
    this.units = [...new Set(priced)].filter((unit) => !unitsOfAll.includes(unit))
  }

  /** Patterns with an `@` go first for a text with one: it names a tier. */
  #matching(text: string): readonly Pattern[] {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    if (this.#known.size >= knownMax) this.#known.clear()
    const matching = this.#patterns.filter(({ tests }) => tests(text))
    const found = text.includes('@') ? matching.toSorted((a, b) => Number(!a.untiered) - Number(!b.untiered)) : matching
    this.#known.set(text, found)
    return found
  }

  find(text: string, atMs: number): RateEntry | undefined {
    const pattern = this.#matching(text).find((one) => inForce(one, atMs) !== undefined)
    return pattern && inForce(pattern, atMs)
  }

  findTier(model: string, tier: string, atMs: number): RateEntry | undefined {
    const found = this.find(`${model}@${tier}`, atMs)
    return found?.pattern.includes('@') === true ? found : undefined
  }

  /** What a model may cost by whatever tier answers. */
  tiersOf(model: string, atMs: number): readonly RateEntry[] {
    return this.#patterns.flatMap((one) => (one.untiered?.(model) === true ? (inForce(one, atMs) ?? []) : []))
  }
}

/** A card, prepared once for all requests. */
class CardRates {
  readonly card: RateCard
  readonly #byDimension: readonly (readonly [dimension: string, rates: DimensionRates])[]
  readonly #models: readonly (readonly [tests: Test, bounds: ModelBounds])[]

  constructor(card: RateCard) {
    this.card = card
    const groups = Map.groupBy(card.entries, ({ dimension }) => dimension)
    const rates = (entries: readonly RateEntry[]) => new DimensionRates(entries, card.unknown === 'default')
    this.#byDimension = [...groups].map(([name, all]) => [name, rates(all)])
    const texts = [...card.models.keys()].sort(bySpecificity)
    this.#models = texts.map((text) => [testOf(text), card.models.get(text) ?? {}])
  }

  boundsOf(model: string): ModelBounds | undefined {
    return this.#models.find(([tests]) => tests(model))?.[1]
  }

  price(units: Units, request: PricedRequest): Price {
    const { atMs } = request
    const lines: RateLine[] = []
    let [unknown, model]: (string | undefined)[] = []
    for (const [name, rates] of this.#byDimension) {
      const asked = request.values.get(name) ?? ''
      const own = rates.find(asked, atMs)
      const [entry, text] = (name === 'model' && answered(rates, request)) || [own, asked]
      if (entry !== undefined) lines.push(...linesOf(entry, units))
      else if (name !== '' && rates.units.some((unit) => (units.get(unit) ?? 0) > 0)) unknown ??= asked
      if (entry !== own) model = text
    }
    return { card: this.card, nanos: nanosOf(lines), lines, unknown, model }
  }

  most(units: Units, { atMs, values }: PricedRequest): number {
    let sum = 0
    for (const [name, rates] of this.#byDimension) {
      const text = values.get(name) ?? ''
      const found = rates.find(text, atMs)
      const tiers = name === 'model' ? rates.tiersOf(text, atMs) : []
      sum += mostNanosOf(found === undefined ? tiers : [found, ...tiers], units)
    }
    return sum
  }
}

/** The tier of the model that answered, or else of the one that was asked for; else the model itself. */
function answered(
  rates: DimensionRates,
  { answer = {}, values, atMs }: PricedRequest,
): readonly [RateEntry, string] | undefined {
  const asked = values.get('model') ?? ''
  const { model = '', tier = '' } = answer
  const models = [model, asked].filter((one) => one !== '')
  for (const one of tier === '' ? [] : models) {
    const tiered = rates.findTier(one, tier, atMs)
    if (tiered !== undefined) return [tiered, `${one}@${tier}`]
  }
  for (const one of models) {
    const plain = rates.find(one, atMs)
    if (plain !== undefined && plain.pattern !== fallback) return [plain, one]
  }
  return undefined
}

/** The rate cards of a policy, prepared. */
export class RateBook {
  readonly #cards: readonly CardRates[]
  /** Whether requests that nothing measures cost something, now or later. */
  readonly pricesEvery: boolean

  constructor(cards: Iterable<RateCard>) {
    this.#cards = Array.from(cards, (card) => new CardRates(card))
    this.pricesEvery = this.#cards.some(({ card }) => card.entries.some(({ dimension }) => dimension === ''))
  }

  /** What each card makes of what a request used, its `cost` and `requests` among the units. */
  priceAll(units: Units, request: PricedRequest): readonly Price[] {
    return this.#cards.map((card) => card.price(units, request))
  }

  /** By card, the most that a request can cost that uses up to so many units: by the dearest tier that may answer. */
  mostOfAll(units: Units, request: PricedRequest): ReadonlyMap<string, number> {
    return new Map(this.#cards.map((card) => [card.card.name, card.most(units, request)]))
  }

  /** The most tokens of a model, by the first card that knows it. */
  boundsOf(model: string): ModelBounds | undefined {
    return this.#cards.map((card) => card.boundsOf(model)).find((bounds) => bounds !== undefined)
  }
}
