import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { startFakeSupplier } from '../../support/fake-supplier.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { changesOf, openWriter, wholeChange } from '../../support/policy-topic.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { until } from '../../support/until.ts'

const supplier = await forFile(startFakeSupplier())

const from = '2026-01-01T00:00:00Z'
const month = { algorithm: 'fixed_window', period: 'month', unit: 'usd' }
const cards = (input: string) => ({
  usd: {
    currency: 'USD',
    per: 1_000_000,
    unknown: 'refuse',
    models: { 'doc-*': { context: 1_000, maxOutput: 50 } },
    prices: [
      { model: 'm', from, prices: { input_tokens: input, cache_read_input_tokens: '0.35', output_tokens: '15' } },
      { model: 'm@flex', from, prices: { input_tokens: '1.5', output_tokens: '7.5' } },
      { model: 'n', from, prices: { input_tokens: '4', output_tokens: '20' } },
      { model: 'n@priority', from, prices: { output_tokens: '40' } },
      { model: 'doc-*', from, prices: { input_tokens: '1', output_tokens: '1' } },
      { model: 'dear', from, prices: { input_tokens: '1000000' } },
      { tool: 'search', from, prices: { calls: '2000' } },
    ],
  },
  eur: {
    currency: 'EUR',
    unknown: 'count',
    prices: [
      { model: 'm', from, prices: { output_tokens: '0.00001' } },
      { from, prices: { requests: '0.002', cost: '0.0001' } },
    ],
  },
  gbp: {
    currency: 'GBP',
    per: 1_000_000,
    unknown: 'default',
    prices: [{ model: '*', from, prices: { output_tokens: '3' } }],
  },
})
const names = ['ann', 'ben', 'cat', 'dan', 'eve', 'fay', 'gus', 'hal', 'ivy', 'jon']
const policyOf = (input = '3') => ({
  version: 1,
  rateCards: cards(input),
  limits: {
    usd: { ...month, size: '20.00' },
    seen: { ...month, size: '0.000001', mode: 'shadow' },
    small: { ...month, size: '0.05', hold: '0.000001' },
    eur: { ...month, unit: 'eur', size: '0.0075' },
  },
  plans: {
    paid: { limits: ['usd'] },
    seen: { limits: ['seen'] },
    small: { limits: ['small'] },
    plain: { limits: ['eur'] },
    free: { limits: [] },
  },
  upstreams: { supplier: { url: supplier.url, hosts: ['*'] } },
  routes: [
    { match: 'POST /v1/chat/completions', meter: 'openai' },
    { match: 'POST /v1/chat/held', meter: 'held' },
    { match: 'POST /v1/chat/refunded', meter: 'openai', refundOn: [500] },
    { match: 'POST /v1/messages', meter: 'anthropic' },
    { match: 'POST /mcp', meter: 'mcp' },
    { match: 'POST /plain', cost: 5 },
    { match: 'POST /plain/refunded', cost: 5, refundOn: [503] },
  ],
  meters: { held: { preset: 'openai', unsaid: 'hold' } },
  subjects: {
    ...Object.fromEntries(names.map((name) => [name, { plan: 'paid', keys: [{ sha256: sha256(name) }] }])),
    poor: { plan: 'paid', limits: { usd: { size: '0.01' } }, keys: [{ sha256: sha256('poor') }] },
    seen: { plan: 'seen', keys: [{ sha256: sha256('seen') }] },
    small: { plan: 'small', keys: [{ sha256: sha256('small') }] },
    plain: { plan: 'plain', keys: [{ sha256: sha256('plain') }] },
    back: { plan: 'plain', keys: [{ sha256: sha256('back') }] },
    free: { plan: 'free', keys: [{ sha256: sha256('free') }] },
  },
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
})

const stack = await forFile(startIngressStack(policyOf()))
const { ingress } = stack

const post = (path: string, subject: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${ingress.proxy}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': subject, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
const chat = (more: object = {}) => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hello' }],
  max_tokens: 100,
  ...more,
})
const withUsage = { stream: true, stream_options: { include_usage: true } }

async function ask(path: string, body: object) {
  const headers = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const answer = await fetch(`${ingress.api}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return (await answer.json()) as {
    readonly id: string
    readonly detail?: string
    readonly limits: readonly { readonly name: string; readonly used: number; readonly remaining: number }[]
  }
}
/** What is used and left of a subject's only limit. */
async function stateOf(subject: string) {
  const { limits } = await ask('check', { subject, peek: true })
  return limits.map(({ used, remaining }) => ({ used, remaining }))[0] ?? expect.fail('no limit')
}
const settled = (subject: string, used: number) => until(async () => (await stateOf(subject)).used === used)

async function records(id: string, count = 2) {
  const isIts = (one: { readonly id: string; readonly corrects?: string }) => one.id === id || one.corrects === id
  const found = await readDecisions(stack.kafka, isIts, (all) => all.length === count)
  return { decision: found.find((one) => one.id === id), settlement: found.find((one) => one.corrects === id) }
}
const idOf = (answer: Response) => answer.headers.get('weir-decision') ?? ''
const billOf = (answer: Response) => supplier.bills.get(idOf(answer)) ?? expect.fail('no bill')
/** By the prices of `m`, in nanos: half of the input was cached. */
const priceOf = ({ input_tokens: input, output_tokens: output }: ReturnType<typeof billOf>) => {
  const cached = Math.floor(input / 2)
  return (input - cached) * 3_000 + cached * 350 + output * 15_000
}

test.each([
  ['A chat', '/v1/chat/completions', chat()],
  ['A streamed chat', '/v1/chat/completions', chat(withUsage)],
])('%s holds the most that it can cost, and costs what the supplier bills to the nano', async (_, path, body) => {
  const before = await stateOf('ann')
  const answer = await post(path, 'ann', body, { 'x-output': '41' })
  await answer.text()
  expect(answer.headers.get('ratelimit-policy')).toBe('"usd";q=20000000000;qu="usd-nano"')
  const price = priceOf(billOf(answer))
  await settled('ann', before.used + price)
  expect((await stateOf('ann')).remaining).toBe(20_000_000_000 - before.used - price)
  const { decision, settlement } = await records(idOf(answer))
  const most = JSON.stringify(body).length + 2_048
  expect(decision?.held).toMatchObject({ usd: most * 3_000 + 100 * 15_000, eur: 2_000_000 + 100_000 + 100 * 10_000 })
  expect(settlement?.units).toMatchObject({ usd: price, eur: 2_100_000 + 41 * 10_000, gbp: 41 * 3_000 })
  expect(settlement?.dims).toEqual({ model: 'm' })
})

test('What does not fit is refused before it is spent, and holds nothing', async () => {
  const sent = supplier.bills.size
  const refused = await post('/v1/chat/completions', 'poor', chat({ max_tokens: 500 }))
  expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: 'cost_exceeds_limit' } }])
  const fits = await post('/v1/chat/completions', 'poor', chat({ max_tokens: 100 }), { 'x-output': '100' })
  expect(fits.status).toBe(200)
  await settled('poor', priceOf(billOf(fits)))
  const full = await post('/v1/chat/completions', 'poor', chat({ max_tokens: 150 }))
  expect([full.status, full.headers.get('x-should-retry')]).toEqual([429, 'false'])
  expect(supplier.bills.size).toBe(sent + 1)
})

test('The model and the tier that answered are priced, and recorded', async () => {
  const other = await post('/v1/chat/completions', 'ben', chat(), { 'x-model': 'n' })
  const flex = await post('/v1/chat/completions', 'ben', chat(withUsage), { 'x-model': 'm', 'x-tier': 'flex' })
  const unknown = await post('/v1/chat/completions', 'ben', chat(), { 'x-model': 'o' })
  for (const answer of [other, flex, unknown]) await answer.text()
  const found = await Promise.all([other, flex, unknown].map(async (one) => (await records(idOf(one))).settlement))
  const [n, f, u] = [billOf(other), billOf(flex), billOf(unknown)]
  expect(found.map((one) => [one?.dims?.model, one?.units?.usd])).toEqual([
    ['n', n.input_tokens * 4_000 + n.output_tokens * 20_000],
    ['m@flex', f.input_tokens * 1_500 + f.output_tokens * 7_500],
    ['m', priceOf(u)],
  ])
})

test('A model without a price is refused, free and counted, or has the default price, as each card says', async () => {
  const refused = await post('/v1/chat/completions', 'free', chat({ model: 'new' }))
  expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: 'unpriced_model' } }])
  const nameless = await post('/v1/chat/completions', 'free', chat({ model: undefined }))
  expect(nameless.status).toBe(403)
  const free = await post('/v1/chat/completions', 'free', chat({ model: 'n' }))
  await free.text()
  const { decision, settlement } = await records(idOf(free))
  const { output_tokens: output } = billOf(free)
  const { input_tokens: input = 0 } = decision?.held ?? {}
  // The dearest tier may answer.
  expect(decision?.held).toMatchObject({ usd: input * 4_000 + 100 * 40_000, eur: 2_100_000, unpriced: 1, gbp: 300_000 })
  expect(settlement?.units).toMatchObject({ eur: 2_100_000, unpriced: 1, gbp: output * 3_000 })
})

test('A request that fails costs nothing but the request, and nothing at all if that is refunded', async () => {
  const failed = await post('/v1/chat/completions', 'cat', chat(), { 'x-fail': '500' })
  await failed.text()
  const { settlement } = await records(idOf(failed))
  expect(settlement?.units).toMatchObject({ usd: 0, eur: 2_100_000, gbp: 0 })
  const refunded = await post('/v1/chat/refunded', 'cat', chat(), { 'x-fail': '500' })
  await refunded.text()
  const { settlement: back } = await records(idOf(refunded))
  expect([back?.adjustment, back?.units?.eur]).toEqual([-1, 0])
  expect(await stateOf('cat')).toEqual({ used: 0, remaining: 20_000_000_000 })
})

test('The bounds of a card hold what neither the request nor its meter bounds', async () => {
  const document = [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }]
  const answer = await post('/v1/chat/completions', 'dan', { model: 'doc-1', messages: document })
  await answer.text()
  const { decision } = await records(idOf(answer))
  expect(decision?.held).toMatchObject({ input_tokens: 1_000, output_tokens: 50, usd: 1_050_000 })
  const unbounded = await post('/v1/chat/completions', 'dan', { model: 'm', messages: document })
  const dear = await post('/v1/chat/completions', 'dan', chat({ model: 'dear' }))
  expect([unbounded.status, dear.status]).toEqual([403, 403])
})

test('A response that says no usage costs all that was held, where the meter says so', async () => {
  const answer = await post('/v1/chat/held', 'fay', chat({ model: 'n', stream: true }))
  await answer.text()
  const { decision, settlement } = await records(idOf(answer))
  expect([settlement?.basis, settlement?.units?.usd]).toEqual(['bound', decision?.held?.usd])
})

test('A limit in shadow refuses nothing, and counts all that was spent', async () => {
  let spent = 0
  for (const body of [chat(), chat({ model: 'dear' })]) {
    const answer = await post('/v1/chat/completions', 'seen', body)
    await answer.text()
    const bill = billOf(answer)
    spent += body.model === 'm' ? priceOf(bill) : bill.input_tokens * 1_000_000_000
    const { settlement } = await records(idOf(answer))
    expect([answer.status, settlement?.limits]).toMatchObject([200, [{ name: 'seen', size: 1_000, used: spent }]])
  }
})

test('A smaller hold admits more at a time, and all that was spent counts', async () => {
  const asks = ['a', 'b'].map(() => post('/v1/chat/completions', 'small', chat({ max_tokens: 3_000 })))
  const answers = await Promise.all(asks)
  for (const answer of answers) await answer.text()
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  await settled(
    'small',
    answers.map(billOf).reduce((sum, bill) => sum + priceOf(bill), 0),
  )
})

test('Calls of tools are charged at once', async () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search' } }
  const answer = await post('/mcp', 'eve', call)
  const listed = await post('/mcp', 'eve', { ...call, method: 'tools/list', params: {} })
  expect([answer.status, listed.status]).toEqual([200, 200])
  const { decision } = await records(idOf(answer), 1)
  expect([decision?.units?.usd, decision?.basis]).toEqual([2_000_000, 'reported'])
  expect(await stateOf('eve')).toEqual({ used: 2_000_000, remaining: 20_000_000_000 - 2_000_000 })
  expect((await post('/mcp', 'eve', { ...call, params: { name: 'other' } })).status).toBe(200)
})

test('Requests that no meter measures cost what the card says, at every entry point', async () => {
  const each = 2_000_000 + 5 * 100_000
  const answer = await post('/plain', 'plain', {})
  const { decision } = await records(idOf(answer), 1)
  expect([decision?.units, decision?.basis, decision?.held]).toEqual([{ eur: each }, 'reported', undefined])
  const check = await ask('check', { subject: 'plain', route: 'POST /plain' })
  expect(check.limits).toMatchObject([{ name: 'eur', used: 2 * each }])
  const authorized = await fetch(`${ingress.api}/v1/authorize/plain`, {
    method: 'POST',
    headers: { 'x-api-key': 'plain' },
  })
  expect(authorized.headers.get('ratelimit')).toContain('"eur";r=0')
  expect((await post('/plain', 'plain', {})).status).toBe(429)
  await post('/plain/refunded', 'back', {}, { 'x-fail': '503' })
  await until(async () => (await stateOf('back')).used === 0)
})

test('A check names amounts of money, and no other unit is as large', async () => {
  const held = await ask('check', { subject: 'gus', units: { usd: 15_000_000_000 }, settle: '1m' })
  expect(held.limits).toMatchObject([{ used: 0, remaining: 5_000_000_000 }])
  await ask('settle', { subject: 'gus', id: held.id, units: { usd: 12_345_678_901 } })
  expect(await stateOf('gus')).toEqual({ used: 12_345_678_901, remaining: 7_654_321_099 })
  const { detail } = await ask('check', { subject: 'gus', units: { tokens: 15_000_000_000 } })
  expect(detail).toContain('units.tokens must be at most 1000000000')
})

test('A price that changes while a request is open is not its price', async () => {
  const answer = await post('/v1/chat/completions', 'hal', chat(withUsage), { 'x-pause': '2' })
  await until(() => supplier.paused.size === 1)
  const writer = openWriter(kafkaOptions(stack.kafka.address), topics.policy)
  await writer.publish(wholeChange(changesOf(JSON.stringify(policyOf('30')))))
  const costs = async () => {
    const now = await post('/v1/chat/completions', 'ivy', chat())
    await now.text()
    return (await records(idOf(now))).settlement?.units?.usd ?? 0
  }
  await until(async () => (await costs()) > 200_000)
  for (const resume of supplier.paused) resume()
  supplier.paused.clear()
  await answer.text()
  await settled('hal', priceOf(billOf(answer)))
})
