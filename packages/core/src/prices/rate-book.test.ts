import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAmount } from './amount.ts'
import { RateBook } from './rate-book.ts'
import { mostNanosOf, nanosOf, nanosPerRequestMax, type RateCard, type RateEntry, withRequest } from './rate-card.ts'

const million = 1_000_000n
/** Prices of a million. */
const pricesOf = (texts: Readonly<Record<string, string>>) =>
  new Map(Object.entries(texts).map(([unit, text]) => [unit, (parseAmount(text) ?? expect.fail(text)) / million]))
const entry = (
  pattern: string,
  prices: Readonly<Record<string, string>>,
  more: Partial<RateEntry> = {},
): RateEntry => ({ dimension: 'model', pattern, fromMs: 0, prices: pricesOf(prices), ...more })
const card = (entries: readonly RateEntry[], more: Partial<RateCard> = {}): RateCard => ({
  name: 'usd',
  currency: 'USD',
  unknown: 'refuse',
  entries,
  models: new Map(),
  ...more,
})
const units = (of: Readonly<Record<string, number>>) => new Map(Object.entries(of))
const request = (model: string, atMs = 10, answer = {}) => ({ atMs, values: new Map([['model', model]]), answer })
const priced = (one: RateCard, used: Readonly<Record<string, number>>, of: ReturnType<typeof request>) => {
  const [price] = new RateBook([one]).priceAll(units(used), of)
  return price ?? expect.fail('no card')
}

const sonnet = {
  input_tokens: '3',
  cache_read_input_tokens: '0.30',
  cache_creation_input_tokens: '3.75',
  cache_creation_1h_input_tokens: '6',
  output_tokens: '15',
  web_search_requests: '10000',
}

describe('The amount', () => {
  test('A part is priced instead of its share of the whole, and what is no part is added', () => {
    const used = {
      input_tokens: 1_000,
      cache_read_input_tokens: 400,
      cache_creation_input_tokens: 200,
      cache_creation_1h_input_tokens: 50,
      output_tokens: 10,
      reasoning_output_tokens: 7,
      tokens: 1_010,
      web_search_requests: 1,
    }
    const { nanos, lines } = priced(card([entry('*-sonnet', sonnet)]), used, request('claude-sonnet'))
    expect(lines.map(({ unit, quantity }) => [unit, quantity])).toEqual([
      ['input_tokens', 400],
      ['cache_read_input_tokens', 400],
      ['cache_creation_input_tokens', 150],
      ['cache_creation_1h_input_tokens', 50],
      ['output_tokens', 10],
      ['web_search_requests', 1],
    ])
    expect(nanos).toBe(400 * 3_000 + 400 * 300 + 150 * 3_750 + 50 * 6_000 + 10 * 15_000 + 10_000_000)
  })

  test('It is rounded half up, once for all of a request', () => {
    const fine = card([entry('m', { input_tokens: '0.0005', output_tokens: '0.0005' })])
    const cost = (input: number, output: number) =>
      priced(fine, { input_tokens: input, output_tokens: output }, request('m')).nanos
    expect([cost(0, 0), cost(1, 0), cost(1, 1), cost(2, 1)]).toEqual([0, 1, 1, 2])
  })

  test('A step is that of the request itself: above it all of its units have the other prices', () => {
    const above = { inputTokens: 100, prices: pricesOf({ input_tokens: '6', output_tokens: '15' }) }
    const stepped = card([entry('m', { input_tokens: '3', output_tokens: '10' }, { above })])
    const cost = (input: number) => priced(stepped, { input_tokens: input, output_tokens: 1 }, request('m')).nanos
    expect([cost(100), cost(101)]).toEqual([310_000, 621_000])
  })

  test('A request costs at most 1,000 units of the currency', () => {
    const dear = card([entry('m', { input_tokens: '1000000' })])
    expect(priced(dear, { input_tokens: 1_000_000 }, request('m')).nanos).toBe(nanosPerRequestMax)
  })
})

describe('The entry', () => {
  const at = (price: string) => ({ input_tokens: price })
  const rates = card([
    entry('gpt-*', at('1')),
    entry('gpt-5*', at('2')),
    entry('gpt-5-mini', at('3')),
    entry('gpt-5-mini', at('4'), { fromMs: 100 }),
    entry('gpt-5-mini@flex', at('5')),
    entry('gpt-6', at('6'), { fromMs: 100 }),
    entry('vertex@2024', at('7')),
    entry('*', at('9')),
  ])
  const priceAt = (of: ReturnType<typeof request>, one = rates) => {
    const { lines, unknown, model } = priced(one, { input_tokens: 1 }, of)
    return { price: lines[0] && Number(lines[0].price) / 1e6, unknown, model }
  }

  test('The longest match wins, then the latest price that is not after the decision', () => {
    const models = ['gpt-4', 'gpt-5', 'gpt-5-mini', 'gpt-5-mini-2025', 'vertex@2024']
    expect(models.map((model) => priceAt(request(model)).price)).toEqual([1, 2, 3, 2, 7])
    expect([99, 100].map((atMs) => priceAt(request('gpt-5-mini', atMs)).price)).toEqual([3, 4])
    expect([99, 100].map((atMs) => priceAt(request('gpt-6', atMs)).price)).toEqual([1, 6])
  })

  test('The model that answered is priced if it can be, by its tier, else the one that was asked for', () => {
    const answers = [
      { model: 'gpt-5-mini' },
      { model: 'gpt-5-2025', tier: 'default' },
      { model: 'o9' },
      { model: 'gpt-5-mini', tier: 'flex' },
      { tier: 'flex' },
    ]
    const asked = request('gpt-5-mini', 10, { model: 'gpt-5-mini-2025', tier: 'flex' })
    expect(priceAt(asked)).toEqual({ price: 5, model: 'gpt-5-mini@flex', unknown: undefined })
    expect(answers.map((answer) => priceAt(request('gpt-5', 10, answer)))).toEqual([
      { price: 3, model: 'gpt-5-mini', unknown: undefined },
      { price: 2, model: undefined, unknown: undefined },
      { price: 2, model: undefined, unknown: undefined },
      { price: 5, model: 'gpt-5-mini@flex', unknown: undefined },
      { price: 2, model: undefined, unknown: undefined },
    ])
    // What is recorded says the price again.
    expect(priceAt(request('gpt-5-mini@flex'))).toEqual({ price: 5, model: undefined, unknown: undefined })
  })

  test('An unknown model is known as such, unless the card has a default', () => {
    expect(priceAt(request('o9'))).toEqual({ price: undefined, unknown: 'o9', model: undefined })
    expect(priceAt(request(''))).toEqual({ price: undefined, unknown: '', model: undefined })
    expect(priceAt(request('o9'), { ...rates, unknown: 'default' })).toMatchObject({ price: 9, unknown: undefined })
    // It used nothing that the model is needed for.
    expect(priced(rates, { calls: 1, requests: 1 }, request('o9')).unknown).toBeUndefined()
  })

  test('A pattern matches whole texts, in one pass', () => {
    const star = (pattern: string, model: string) =>
      priceAt(request(model), card([entry(pattern, at('1'))])).price !== undefined
    expect([star('a*b*c', 'a-b-c'), star('a*b*c', 'abc'), star('a*b*c', 'ac'), star('a*b*c', 'a-b-c-d')]).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect([star('ab*ba', 'aba'), star('a.c', 'abc'), star('**', '')]).toEqual([false, false, true])
  })

  test('Requests that nothing measures cost what an entry without a dimension says', () => {
    const every = entry('', { requests: '1000', cost: '20' }, { dimension: '' })
    const book = new RateBook([card([every, entry('m', at('1'))]), card([entry('m', at('1'))], { name: 'eur' })])
    expect(book.pricesEvery).toBe(true)
    const prices = book.priceAll(withRequest(new Map(), 5), { atMs: 10, values: new Map() })
    expect(prices.map(({ nanos, lines }) => [nanos, lines.length])).toEqual([
      [1_000_000 + 5 * 20_000, 2],
      [0, 0],
    ])
    expect(new RateBook([rates]).pricesEvery).toBe(false)
  })
})

describe('The most', () => {
  const asked = units({ input_tokens: 1_000, output_tokens: 100, tokens: 1_100 })

  test('Each unit is held at the dearest price of itself and its parts, by the dearest tier', () => {
    const book = new RateBook([card([entry('m', sonnet), entry('m@priority', { output_tokens: '30' })])])
    expect(book.mostOfAll(asked, request('m'))).toEqual(new Map([['usd', 1_000 * 6_000 + 100 * 30_000]]))
    expect(book.mostOfAll(asked, request('other'))).toEqual(new Map([['usd', 0]]))
  })

  test('The prices above a step are held only by what may reach it', () => {
    const above = (inputTokens: number) => ({ inputTokens, prices: pricesOf({ input_tokens: '9' }) })
    const most = (inputTokens: number) => mostNanosOf([entry('m', at3, { above: above(inputTokens) })], asked)
    expect([most(1_000), most(999)]).toEqual([3_000_000, 9_000_000])
  })
  const at3 = { input_tokens: '3' }

  test('The models of a card have bounds', () => {
    const models = new Map([
      ['m*', { context: 10 }],
      ['mini', { context: 5, maxOutput: 2 }],
    ])
    const book = new RateBook([card([]), card([], { name: 'eur', models })])
    expect([book.boundsOf('max'), book.boundsOf('mini'), book.boundsOf('o')]).toEqual([
      { context: 10 },
      { context: 5, maxOutput: 2 },
      undefined,
    ])
  })
})

/** `3.75` as a fraction: the model knows no places and no thousandths. */
function fractionOf(text: string): readonly [over: bigint, under: bigint] {
  const [whole = '', places = ''] = text.split('.')
  return [BigInt(whole + places), 10n ** BigInt(places.length)]
}
const names = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens',
  'reasoning_output_tokens',
] as const
const decimals = fc
  .tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 999_999 }))
  .map(([whole, places]) => `${whole}.${String(places).padStart(6, '0')}`)

test('Amounts are Σ units × price in rationals, rounded once, and never more than the most', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...names), decimals),
      fc.array(fc.nat(2_000_000), { minLength: 5, maxLength: 5 }),
      (prices: Readonly<Record<string, string>>, [read = 0, made = 0, fresh = 0, thought = 0, said = 0]) => {
        const shares = {
          cache_read_input_tokens: ['input_tokens', read],
          cache_creation_input_tokens: ['input_tokens', made],
          input_tokens: ['', fresh],
          reasoning_output_tokens: ['output_tokens', thought],
          output_tokens: ['', said],
        } as const
        let [over, under] = [0n, 1n]
        for (const [unit, [whole, quantity]] of Object.entries(shares)) {
          const [numerator, denominator] = fractionOf(prices[unit] ?? prices[whole] ?? '0')
          over = over * denominator * million + BigInt(quantity) * numerator * 1_000_000_000n * under
          under *= denominator * million
        }
        const used = units({
          input_tokens: read + made + fresh,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: made,
          output_tokens: thought + said,
          reasoning_output_tokens: thought,
        })
        const one = card([entry('m', prices)])
        const [price] = new RateBook([one]).priceAll(used, request('m'))
        const exact = (2n * over + under) / (2n * under)
        expect(price?.nanos).toBe(Math.min(nanosPerRequestMax, Number(exact)))
        expect(nanosOf(price?.lines ?? [])).toBe(price?.nanos)
        const bounds = units({ input_tokens: read + made + fresh, output_tokens: thought + said, tokens: 0 })
        expect(mostNanosOf(one.entries, bounds)).toBeGreaterThanOrEqual(price?.nanos ?? 0)
      },
    ),
  )
})
