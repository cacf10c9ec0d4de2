import { createHash } from 'node:crypto'
import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { afterAll, expect, test } from 'vitest'
import { startFakeSupplier } from '../../support/fake-supplier.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { readMetric } from '../../support/read-metric.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { until } from '../../support/until.ts'

const supplier = await forFile(startFakeSupplier())

const names = [
  'ann',
  'ben',
  'cat',
  'dan',
  'eve',
  'fay',
  'gus',
  'hal',
  'ivy',
  'jon',
  'kim',
  'lea',
  'max',
  'nan',
  'ola',
  'pam',
]
const policy = {
  version: 1,
  limits: {
    'tokens-month': { algorithm: 'fixed_window', size: 100_000, period: 'month', unit: 'tokens' },
    'output-minute': { algorithm: 'sliding_window', size: 50_000, window: '1h', unit: 'output_tokens' },
    'tokens-seen': { algorithm: 'fixed_window', size: 100, period: 'month', unit: 'tokens', mode: 'shadow' },
    'calls-day': { algorithm: 'fixed_window', size: 3, period: 'day', unit: 'calls' },
    'seconds-day': { algorithm: 'fixed_window', size: 600, period: 'day', unit: 'seconds' },
  },
  plans: {
    free: { limits: [] },
    seen: { limits: ['tokens-seen'] },
    ai: { limits: ['tokens-month', 'output-minute', 'calls-day', 'seconds-day'] },
  },
  meters: {
    chat: { preset: 'openai', maxOutput: 1_000 },
    held: { preset: 'openai', maxOutput: 1_000, unsaid: 'hold' },
    usage: { preset: 'openai', includeUsage: true },
    drained: { preset: 'openai', maxOutput: 1_000, drain: true },
    render: {
      units: { seconds: { before: { from: 'json:/duration', default: 60 }, after: 'header:x-render-seconds' } },
    },
  },
  upstreams: { supplier: { url: supplier.url, hosts: ['*'] } },
  routes: [
    { match: 'POST /v1/chat/completions', meter: 'chat' },
    { match: 'POST /v1/chat/held', meter: 'held' },
    { match: 'POST /v1/chat/drained', meter: 'drained' },
    { match: 'POST /v1/chat/usage', meter: 'usage' },
    { match: 'POST /v1/responses', meter: 'openai' },
    { match: 'POST /v1/messages', meter: 'anthropic' },
    { match: 'POST /v1/messages/count_tokens', meter: 'none' },
    { match: 'POST /mcp', meter: 'mcp' },
    { match: 'POST /v1/chat/priced', meter: 'chat', cost: 'json:/price' },
    { match: 'POST /v1/render', meter: 'render', cost: 0 },
    { match: 'POST /mcp/words', meter: 'mcp', refusal: { as: 'tool_result', message: 'No calls left today.' } },
    { match: 'POST /mcp/refunded', meter: 'mcp', refundOn: [503] },
    { match: 'POST /v1/chat/refunded', meter: 'chat', cost: 5, refundOn: [503] },
  ],
  subjects: {
    ...Object.fromEntries(names.map((name) => [name, { plan: 'ai', keys: [{ sha256: sha256(name) }] }])),
    seen: { plan: 'seen', keys: [{ sha256: sha256('seen') }] },
    rich: { plan: 'free', keys: [{ sha256: sha256('rich') }] },
  },
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
}

const stack = await forFile(startIngressStack(policy))
const { ingress } = stack
const redis = connectRedis(stack.redis.address, { role: 'limiter', onError: () => {} })
afterAll(() => redis.disconnect())

const post = (
  path: string,
  subject: string,
  body: object | string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
) =>
  fetch(`${ingress.proxy}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': subject, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: signal ?? null,
  })
const chat = (body: object = {}) => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hello' }],
  max_tokens: 100,
  ...body,
})
const withUsage = { stream: true, stream_options: { include_usage: true } }

/** What the month's limit says is used and left now. */
async function month(subject: string, name = 'tokens-month') {
  const headers = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const body = JSON.stringify({ subject, units: { tokens: 0 }, peek: true })
  const answer = await fetch(`${ingress.api}/v1/check`, { method: 'POST', headers, body })
  const { limits } = (await answer.json()) as {
    limits: { name: string; size: number; used: number; remaining: number }[]
  }
  const { size = 0, used = 0, remaining = 0 } = limits.find((limit) => limit.name === name) ?? {}
  return { used, held: size - used - remaining }
}
const settled = (subject: string, used: number, name?: string) =>
  until(async () => {
    const found = await month(subject, name)
    return found.held === 0 && found.used === used
  })

/** The decision that a request was answered by, and its settlement. */
async function records(id: string) {
  const isIts = (one: { readonly id: string; readonly corrects?: string }) => one.id === id || one.corrects === id
  const found = await readDecisions(stack.kafka, isIts, (all) => all.length === 2)
  return { decision: found.find((one) => one.id === id), settlement: found.find((one) => one.corrects === id) }
}
interface Outcome {
  readonly id: string
  readonly subject: string
  readonly error: string
}
/** How requests ended so far. */
async function readOutcomes() {
  const found = await readTopic(kafkaOptions(stack.kafka.address), topics.outcomes, (all) => all.length > 0)
  const outcomes = found.map(({ value }) => JSON.parse(value?.toString() ?? '{}') as Outcome)
  return outcomes.flatMap(({ id, error, subject }) => [`${error} ${id}`, `${error} ${subject}`])
}
const idOf = (answer: Response) => answer.headers.get('weir-decision') ?? ''
const billOf = (answer: Response) => {
  const { input_tokens: input = 0, output_tokens: output = 0 } = supplier.bills.get(idOf(answer)) ?? {}
  return { input, output, tokens: input + output }
}

/** Tokens by OpenTelemetry's metric: of input, and of output. */
const tokensOf = (path: string) => {
  const provider = path.endsWith('messages') ? 'anthropic' : 'openai'
  const labels = `gen_ai_provider_name="${provider}",gen_ai_operation_name="chat",gen_ai_token_type=`
  const read = (type: string) => readMetric(ingress.ops, `gen_ai_client_token_usage_sum{${labels}"${type}"`)
  return Promise.all([read('input'), read('output')])
}

test.each([
  ['a chat', '/v1/chat/completions', chat()],
  ['a streamed chat', '/v1/chat/completions', chat(withUsage)],
  ['messages', '/v1/messages', chat()],
  ['streamed messages', '/v1/messages', chat({ stream: true })],
])('%s is settled to what the supplier bills, and passed on byte for byte', async (_, path, body) => {
  const [before, usedBefore] = [await month('ann'), await tokensOf(path)]
  const answer = await post(path, 'ann', body, { 'x-output': '41' })
  const text = await answer.text()
  const direct = await fetch(`${supplier.url}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'x-output': '41' },
  })
  expect([answer.status, hash(text)]).toEqual([200, hash(await direct.text())])
  const { input, output, tokens } = billOf(answer)
  await settled('ann', before.used + tokens)
  const used = await tokensOf(path)
  expect(used.map((one, at) => one - (usedBefore[at] ?? 0))).toEqual([input, output])
  const { decision, settlement } = await records(idOf(answer))
  expect(decision?.held).toEqual({
    input_tokens: JSON.stringify(body).length + 2_048,
    output_tokens: 100,
    tokens: JSON.stringify(body).length + 2_148,
  })
  expect(settlement?.units).toMatchObject({ input_tokens: input, output_tokens: output, tokens })
  expect([settlement?.basis, settlement?.ts]).toEqual(['reported', decision?.ts])
  const labels = { meter: path.endsWith('messages') ? 'anthropic' : 'chat', dims: { model: 'm' } }
  expect([decision, settlement]).toMatchObject([labels, labels])
})

const hash = (text: string) => createHash('sha256').update(text).digest('hex')

test('While it streams, all that it may use is held, and none of it is used', async () => {
  const body = chat({ ...withUsage })
  const answer = await post('/v1/chat/completions', 'ben', body, { 'x-output': '9', 'x-pause': '3' })
  await until(() => supplier.paused.size === 1)
  expect(await month('ben')).toEqual({ used: 0, held: JSON.stringify(body).length + 2_148 })
  for (const resume of supplier.paused) resume()
  supplier.paused.clear()
  await answer.text()
  await settled('ben', billOf(answer).tokens)
})

test('A client that hangs up pays for what it has seen, and no more than was held', async () => {
  const leaving = new AbortController()
  const body = chat(withUsage)
  const answer = await post('/v1/chat/completions', 'cat', body, { 'x-output': '30', 'x-pause': '20' }, leaving.signal)
  await until(() => supplier.paused.size === 1)
  const reader = answer.body?.getReader()
  await reader?.read()
  leaving.abort()
  const { settlement } = await records(idOf(answer))
  const seen = Math.ceil(JSON.stringify(body).length / 4) + Math.max(20, Math.ceil((20 * 'word '.length) / 3))
  expect([settlement?.units?.tokens, settlement?.basis]).toEqual([seen, 'counted'])
  await settled('cat', seen)
  supplier.paused.clear()
})

test('A stream is asked for its usage where the meter says so, and its client sees none of that', async () => {
  const body = chat({ stream: true })
  const answer = await post('/v1/chat/usage', 'lea', body, { 'x-output': '12' })
  const direct = { method: 'POST', body: JSON.stringify(body), headers: { 'x-output': '12' } }
  expect(await answer.text()).toBe(await (await fetch(`${supplier.url}/v1/chat/usage`, direct)).text())
  const { settlement } = await records(idOf(answer))
  expect([settlement?.units?.tokens, settlement?.basis]).toEqual([billOf(answer).tokens, 'reported'])
})

test('An answer whose client has gone is read to its end, where the meter says so', async () => {
  const leaving = new AbortController()
  const body = chat(withUsage)
  const answer = await post('/v1/chat/drained', 'ivy', body, { 'x-output': '30', 'x-pause': '20' }, leaving.signal)
  await until(() => supplier.paused.size === 1)
  leaving.abort()
  // Nothing is settled before the supplier has said what it bills.
  await until(async () => (await readOutcomes()).includes(`client_gone ${idOf(answer)}`))
  expect((await month('ivy')).held).toBe(JSON.stringify(body).length + 2_148)
  for (const resume of supplier.paused) resume()
  supplier.paused.clear()
  const { settlement } = await records(idOf(answer))
  expect([settlement?.units?.tokens, settlement?.basis]).toEqual([billOf(answer).tokens, 'reported'])
})

test('So is an answer that had not begun when its client left', async () => {
  const leaving = new AbortController()
  const asking = post('/v1/chat/drained', 'ola', chat(), { 'x-output': '30', 'x-pause': '0' }, leaving.signal).catch(
    () => undefined,
  )
  await until(() => supplier.paused.size === 1)
  leaving.abort()
  expect(await asking).toBeUndefined()
  await until(async () => (await readOutcomes()).includes('client_gone ola'))
  for (const resume of supplier.paused) resume()
  supplier.paused.clear()
  const { input_tokens: input = 0, output_tokens: output = 0 } = [...supplier.bills.values()].at(-1) ?? {}
  await settled('ola', input + output)
})

test('An answer without usage counts as held, where the meter says so', async () => {
  const body = chat({ stream: true })
  const answer = await post('/v1/chat/held', 'dan', body)
  await answer.text()
  const { settlement } = await records(idOf(answer))
  expect([settlement?.units?.tokens, settlement?.basis]).toEqual([JSON.stringify(body).length + 2_148, 'bound'])
  await settled('dan', JSON.stringify(body).length + 2_148)
})

test('An upstream that fails has used nothing, and the cost is refunded where the route says so', async () => {
  const answer = await post('/v1/chat/refunded', 'eve', chat(), { 'x-fail': '503' })
  const { decision, settlement } = await records(idOf(answer))
  expect([answer.status, settlement?.units?.tokens, settlement?.adjustment]).toEqual([503, 0, -5])
  expect(decision?.cost).toBe(5)
  await settled('eve', 0)
})

test('What nothing bounds, or whose answer comes later, is refused before it is sent', async () => {
  const sent = supplier.bills.size
  const unbounded = await post('/v1/responses', 'fay', { model: 'm', input: 'hello' })
  const earlier = await post('/v1/chat/completions', 'fay', chat({ previous_response_id: 'resp_1' }))
  const later = await post('/v1/chat/completions', 'fay', chat({ background: true }))
  const twice = await post('/v1/chat/completions', 'fay', '{"model":"m","max_tokens":1,"max_tokens":9}')
  const broken = await post('/v1/chat/completions', 'fay', '{"model":')
  const encoded = await post('/v1/chat/completions', 'fay', chat(), { 'content-encoding': 'gzip' })
  const answers = [unbounded, earlier, later, twice, broken, encoded]
  const problems = await Promise.all(
    answers.map(async (one) => [one.status, ((await one.json()) as { error: { code: string } }).error.code]),
  )
  expect(problems.map((one) => one.join(' '))).toEqual([
    '403 unpriced_model',
    '403 unpriced_model',
    '403 unmetered_route',
    '400 cost_unreadable',
    '400 cost_unreadable',
    '415 cost_unreadable',
  ])
  expect(supplier.bills.size).toBe(sent)
  await settled('fay', 0)
})

test('A response that used more than was held is counted whole, and counted as such', async () => {
  const answer = await post('/v1/chat/completions', 'jon', chat({ max_tokens: 5 }), { 'x-output': '4000' })
  await answer.text()
  await settled('jon', billOf(answer).tokens)
  const readMetrics = async () => (await fetch(`${ingress.ops}/metrics`)).text()
  await until(async () => /^weir_hold_exceeded_total\{unit="output_tokens"\} 1$/m.test(await readMetrics()))
  expect(await readMetrics()).toMatch(/^weir_metered_exchanges_total\{basis="reported"\} [1-9]/m)
})

test('A request that may use nothing and costs nothing is settled all the same', async () => {
  const answer = await post('/v1/render', 'max', { duration: 0 }, { 'x-render': '30' })
  expect(answer.status).toBe(200)
  await settled('max', 30, 'seconds-day')
})

test('A refusal to which holds alone lead says the unit, what is held of it, and to try again soon', async () => {
  const headers = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const body = JSON.stringify({ subject: 'ola', units: { seconds: 400 }, settle: '1m' })
  expect((await fetch(`${ingress.api}/v1/check`, { method: 'POST', headers, body })).status).toBe(200)
  const refused = await post('/v1/render', 'ola', { duration: 300 })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2'])
  const said = { 'violated-policies': ['seconds-day'], unit: 'seconds', held: 400 }
  expect(await refused.json()).toMatchObject(said)
})

test('A request that is refused for its cost holds nothing', async () => {
  expect((await post('/v1/chat/priced', 'pam', chat())).status).toBe(400)
  expect((await month('pam')).held).toBe(0)
  expect((await post('/v1/chat/priced', 'pam', chat({ price: 3 }))).status).toBe(200)
})

test('A limit in shadow refuses nothing, and counts all that was used beyond its size too', async () => {
  let used = 0
  for (const body of [chat(), chat(withUsage), chat({ max_tokens: undefined })]) {
    const answer = await post('/v1/chat/usage', 'seen', body, { 'x-output': '80' })
    await answer.text()
    used += billOf(answer).tokens
    const { decision, settlement } = await records(idOf(answer))
    expect([answer.status, decision?.outcome]).toEqual([200, 'allow'])
    expect(settlement?.limits).toMatchObject([{ name: 'tokens-seen', size: 100, used }])
  }
  expect(used).toBeGreaterThan(100)
})

test('A member in another spelling is no way around a meter', async () => {
  expect((await post('/mcp', 'nan', { jsonrpc: '2.0', id: 1, Method: 'tools/call' })).status).toBe(400)
})

test('Of MCP only calls of tools count, and what does not fit is refused', async () => {
  const call = (method: string) => post('/mcp', 'gus', { jsonrpc: '2.0', id: 1, method, params: { name: 'search' } })
  for (const method of ['initialize', 'tools/list', 'tools/call', 'tools/call', 'tools/call', 'tools/list']) {
    expect([method, (await call(method)).status]).toEqual([method, 200])
  }
  const refused = await call('tools/call')
  expect([refused.status, await refused.json()]).toMatchObject([
    200,
    { id: 1, error: { data: { limit: 'calls-day' } } },
  ])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  const result = await post('/mcp/words', 'gus', { jsonrpc: '2.0', id: 'a', method: 'tools/call' })
  const content = [{ type: 'text', text: 'No calls left today.' }]
  expect(await result.json()).toEqual({ jsonrpc: '2.0', id: 'a', result: { isError: true, content } })
  // What is known when it is decided is recorded once.
  const isMcp = ({ meter, outcome }: { readonly meter?: string; readonly outcome: string }) =>
    meter === 'mcp' && outcome === 'allow'
  const found = await readDecisions(stack.kafka, isMcp, (all) => all.length === 6)
  expect(found.map(({ units, dims, basis }) => [units?.calls, dims?.tool, basis]).toSorted()).toEqual([
    [0, undefined, 'reported'],
    [0, undefined, 'reported'],
    [0, undefined, 'reported'],
    [1, 'search', 'reported'],
    [1, 'search', 'reported'],
    [1, 'search', 'reported'],
  ])
})

test('What a failed upstream used of units that are known before is given back too', async () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search' } }
  const answer = await post('/mcp/refunded', 'kim', call, { 'x-fail': '503' })
  const { decision, settlement } = await records(idOf(answer))
  expect([decision?.units, settlement?.units, settlement?.adjustment]).toEqual([{ calls: 1 }, { calls: -1 }, -1])
})

test('A prompt of ten megabytes is held by its bytes, and passed on whole', async () => {
  const body = chat({ messages: [{ role: 'user', content: 'x'.repeat(10_000_000) }] })
  const answer = await post('/v1/chat/completions', 'hal', body)
  const { error } = (await answer.json()) as { error: { code: string } }
  expect([answer.status, error.code, answer.headers.get('x-should-retry')]).toEqual([
    403,
    'cost_exceeds_limit',
    'false',
  ])
  const free = await post('/v1/chat/completions', 'rich', body)
  await free.text()
  expect([free.status, billOf(free).input]).toEqual([200, Math.ceil(JSON.stringify(body).length / 5)])
  const beyond = await post(
    '/v1/chat/completions',
    'hal',
    chat({ messages: [{ role: 'user', content: 'x'.repeat(11_000_000) }] }),
  )
  expect(beyond.status).toBe(413)
})
