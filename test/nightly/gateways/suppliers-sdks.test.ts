import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, test } from 'vitest'
import { type Exchange, startFakeSupplier } from '../../support/fake-supplier.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { folderForFile, forFile } from '../../support/opened.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { accepts, startProcess } from '../../support/start-process.ts'
import { detailsOf, messageUsage } from '../../support/supplier-answers.ts'
import { type Asking, runClient, type Said, sdks } from '../../support/suppliers-sdks/ask-suppliers.ts'
import { until } from '../../support/until.ts'

const supplier = await forFile(startFakeSupplier())
const [mcpPort = 0] = await freePorts(1)
const mcp = await startProcess(
  ['python3', `${import.meta.dirname}/../../support/suppliers-sdks/mcp-server.py`, `${mcpPort}`],
  {
    name: 'the MCP server',
    logFile: `${await folderForFile('mcp')}/log`,
    env: { PATH: process.env.PATH, PYTHONPATH: `${sdks}/python` },
    ready: () => accepts(mcpPort),
  },
)
await forFile({ close: () => mcp.end('SIGTERM') })

/** Each has a subject with more than it uses, one whose month is used up, and one whose bucket fills in seconds. */
const clients = {
  'openai of PyPI': { program: 'client.py', sdk: 'openai', own: 'openai-py' },
  'openai of npm': { program: 'client.ts', sdk: 'openai', own: 'openai-js' },
  'anthropic of PyPI': { program: 'client.py', sdk: 'anthropic', own: 'anthropic-py' },
  '@anthropic-ai/sdk of npm': { program: 'client.ts', sdk: '@anthropic-ai/sdk', own: 'anthropic-js' },
} as const
type Name = keyof typeof clients
const names = Object.keys(clients) as Name[]
const kinds = ['much', 'month', 'bucket'] as const
const subjects = names.flatMap((name) => kinds.map((kind) => [`${clients[name].own}-${kind}`, kind] as const))
const key = (subject: string) => ({ keys: [{ sha256: sha256(`vk-${subject}`) }] })
const month = { algorithm: 'fixed_window', period: 'month', unit: 'tokens' }
const real = { openai: 'sk-real-of-openai', anthropic: 'sk-real-of-anthropic' }
const policy = {
  version: 1,
  limits: {
    much: { ...month, size: 1_000_000_000 },
    month: { ...month, size: 3_000 },
    bucket: { algorithm: 'token_bucket', size: 3_000, window: '12s', unit: 'tokens' },
    calls: { algorithm: 'fixed_window', size: 3, period: 'day', unit: 'calls' },
  },
  plans: Object.fromEntries([...kinds, 'calls'].map((kind) => [kind, { limits: [kind] }])),
  meters: { embeddings: { preset: 'openai', maxOutput: 0 } },
  upstreams: {
    openai: { url: supplier.url, hosts: ['*'], headers: { authorization: { secretEnv: 'OPENAI' } } },
    anthropic: { url: supplier.url, hosts: [], headers: { 'x-api-key': { secretEnv: 'ANTHROPIC' } } },
    tools: { url: `http://127.0.0.1:${mcpPort}`, hosts: [], metered: true },
  },
  routes: [
    { match: 'POST /v1/chat/completions', upstream: 'openai', meter: 'openai' },
    { match: 'POST /v1/responses', upstream: 'openai', meter: 'openai' },
    { match: 'POST /v1/embeddings', upstream: 'openai', meter: 'embeddings' },
    { match: 'GET /v1/models', upstream: 'openai', meter: 'none' },
    { match: 'POST /v1/messages', upstream: 'anthropic', meter: 'anthropic' },
    { match: 'POST /v1/messages/count_tokens', upstream: 'anthropic', meter: 'none' },
    { match: 'GET /v1/messages/batches', upstream: 'anthropic' },
    { match: 'POST /mcp', upstream: 'tools', meter: 'mcp' },
    { match: 'GET /mcp', upstream: 'tools', meter: 'none' },
    { match: 'DELETE /mcp', upstream: 'tools', meter: 'none' },
  ],
  subjects: {
    ...Object.fromEntries(subjects.map(([subject, plan]) => [subject, { plan, ...key(subject) }])),
    ...Object.fromEntries(['auto', 'legacy'].map((mode) => [mode, { plan: 'calls', ...key(mode) }])),
  },
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
}
const { OPENAI, ANTHROPIC } = { OPENAI: real.openai, ANTHROPIC: real.anthropic }
const { ingress, kafka } = await forFile(startIngressStack(policy, { OPENAI, ANTHROPIC }))

const messages = [{ role: 'user', content: 'hello' }]
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const chat = { model: 'm', messages, max_tokens: 100 }
const usage = { stream_options: { include_usage: true } }
const responses = { model: 'm', input: 'hello', max_output_tokens: 100 }
/** What a body's other members take of 10 MB. */
const mostBytes = 10 * 1_048_576 - 200

/** What is asked, and a part of what the SDK makes of the answer: a result, or the class and the words of its error. */
type Case = readonly [call: string, args: object, expected: object | readonly [string, RegExp], more?: Partial<Asking>]
const words = 'word '.repeat(7)
const paris = '{"city":"Paris"}'
const chatTools = [{ type: 'function', function: { name: 'weather', parameters, strict: true } }]
const responseTools = [{ type: 'function', name: 'weather', parameters, strict: true }]
const said = { choices: [{ message: { content: words } }] }
const called = {
  choices: [{ finish_reason: 'tool_calls', message: { tool_calls: [{ function: { arguments: paris } }] } }],
}
const responded = { output: [{ content: [{ text: 'word' }] }] }
const responseCall = { output: [{ type: 'function_call', name: 'weather', arguments: paris }] }
const openaiCases: Readonly<Record<string, Case>> = {
  plain: ['chat.completions.create', chat, said],
  streamed: ['chat.completions.stream', { ...chat, ...usage }, said],
  'tool call': ['chat.completions.stream', { ...chat, ...usage, tools: chatTools }, called],
  response: ['responses.create', responses, responded],
  'streamed response': ['responses.stream', responses, responded],
  'tool call of a response': ['responses.stream', { ...responses, tools: responseTools }, responseCall],
  embeddings: ['embeddings.create', { model: 'm', input: ['hello'] }, { data: [{ embedding: [0.5, 0.25] }] }],
  unmetered: ['models.list', {}, { data: [{ id: 'm' }] }],
  'no route': ['files.list', {}, ['PermissionDeniedError', /403.*no route of the policy meters/]],
}
const wrote = { content: [{ type: 'text', text: words }] }
const used = { content: [{ type: 'tool_use', name: 'weather', input: { city: 'Paris' } }], stop_reason: 'tool_use' }
const anthropicCases: Readonly<Record<string, Case>> = {
  plain: ['messages.create', chat, wrote],
  streamed: ['messages.stream', chat, wrote],
  'tool call': ['messages.stream', { ...chat, tools: [{ name: 'weather', input_schema: parameters }] }, used],
  unmetered: ['messages.count_tokens', { model: 'm', messages }, { input_tokens: expect.any(Number) }],
  'no meter': ['messages.batches.list', {}, ['PermissionDeniedError', /403.*'?type'?.*no route of the policy meters/]],
}
const casesOf = (isOpenai: boolean, own: string): Readonly<Record<string, Case>> => {
  const create = isOpenai ? 'chat.completions.create' : 'messages.create'
  const plain = isOpenai ? said : wrote
  const tooLarge = isOpenai ? 'APIError' : 'ContentTooLargeError'
  return {
    ...(isOpenai ? openaiCases : anthropicCases),
    '10 MB': [create, chat, plain, { fill: mostBytes }],
    'more than 10 MB': [create, chat, [tooLarge, /413.*must not exceed 10485760 bytes/], { fill: mostBytes + 200 }],
    'above the limit': [
      create,
      chat,
      ['PermissionDeniedError', /403.*the limit month can ever allow/],
      { fill: 3_000, key: `vk-${own}-month` },
    ],
    'unknown key': [create, chat, ['AuthenticationError', /401.*Send a valid key/], { key: 'vk-nobody' }],
    'used up': [create, chat, ['RateLimitError', /429.*The limit month is used up/], { key: `vk-${own}-month` }],
    filling: [create, chat, {}, { key: `vk-${own}-bucket`, headers: { 'x-output': '2900' } }],
    'asked again': [create, chat, plain, { key: `vk-${own}-bucket` }],
    failing: [create, chat, ['InternalServerError', /500.*overloaded/], { headers: { 'x-fail': '500' } }],
  }
}

/** Uses up the month of a subject. */
async function useUp(path: string, subject: string) {
  const headers = { 'x-api-key': `vk-${subject}`, 'content-type': 'application/json', 'x-output': '2900' }
  await (await fetch(`${ingress.proxy}${path}`, { method: 'POST', headers, body: JSON.stringify(chat) })).text()
  const check = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const body = JSON.stringify({ subject, units: { tokens: 0 }, peek: true })
  await until(async () => {
    const answer = await fetch(`${ingress.api}/v1/check`, { method: 'POST', headers: check, body })
    const { limits = [] } = (await answer.json()) as { limits?: { used: number }[] }
    return (limits[0]?.used ?? 0) > 2_900
  })
}

/** Asks everything by one SDK. `pairs` has each response that the supplier sent, as it sent it and as it came. */
async function askAll(name: Name) {
  const { program, sdk, own } = clients[name]
  await useUp(sdk === 'openai' ? '/v1/chat/completions' : '/v1/messages', `${own}-month`)
  const cases = casesOf(sdk === 'openai', own)
  const asked = Object.entries(cases).map(([one, [call, args, , more]]): Asking => {
    const headers = { 'x-case': `${own} ${one}`, ...more?.headers }
    return { name: one, call, args, key: `vk-${own}-much`, ...more, headers }
  })
  const environment =
    sdk === 'openai'
      ? { OPENAI_BASE_URL: `${ingress.proxy}/v1`, OPENAI_API_KEY: 'replaced' }
      : { ANTHROPIC_BASE_URL: ingress.proxy, ANTHROPIC_API_KEY: 'replaced' }
  const results: Said[] = await runClient(program, [sdk, JSON.stringify(asked)], environment)
  const pairs = results.flatMap(({ name: one, exchanges }) => {
    const sent = supplier.exchanges.filter((exchange) => exchange.case === `${own} ${one}`)
    const came = exchanges.filter(({ status }) => status === 200 || status === 500)
    expect([one, sent.length]).toEqual([one, came.length])
    return came.map((exchange, at) => ({ ...exchange, sent: sent[at] }))
  })
  return { cases, results, pairs }
}
const asking = new Map(names.map((name) => [name, askAll(name)]))
const outcomeOf = async (name: Name) => (await asking.get(name)) ?? { cases: {}, results: [], pairs: [] }

test.each(names)('%s reads whole and streamed answers, calls of tools, and 10 MB, byte for byte', async (name) => {
  const { cases, results, pairs } = await outcomeOf(name)
  for (const { name: one, result, error } of results) {
    const expected = cases[one]?.[2] ?? {}
    if (!Array.isArray(expected)) expect([one, error, result]).toMatchObject([one, undefined, expected])
  }
  expect(pairs.map(({ sha256: hash }) => hash)).toEqual(pairs.map(({ sent }) => sent?.sha256))
  const key = clients[name].sdk === 'openai' ? [`Bearer ${real.openai}`, undefined] : [undefined, real.anthropic]
  expect(pairs.map(({ sent }) => sent?.credentials)).toEqual(pairs.map(() => key))
})

test.each(names)('%s raises its own errors with the words of Weir, and tries again where that helps', async (name) => {
  const { cases, results } = await outcomeOf(name)
  const statuses = new Map(results.map(({ name: one, exchanges }) => [one, exchanges.map(({ status }) => status)]))
  for (const { name: one, error } of results) {
    const expected = cases[one]?.[2] ?? {}
    if (!Array.isArray(expected)) continue
    const [type, message] = expected
    expect([one, error?.types, error?.message]).toEqual([
      one,
      expect.arrayContaining([type]),
      expect.stringMatching(message),
    ])
    expect([one, statuses.get(one)]).toEqual([one, one === 'failing' ? [500, 500, 500] : [error?.status]])
  }
  const again = results.find(({ name: one }) => one === 'asked again')?.exchanges ?? []
  expect(again.map(({ status }) => status).join()).toMatch(/^429,(?:429,)?200$/)
  for (const [at, { at: first, retryAfter }] of again.slice(0, -1).entries()) {
    expect((again[at + 1]?.at ?? 0) - first).toBeGreaterThanOrEqual(Number(retryAfter) * 1_000)
  }
})

/** The units of a response's record, by what the supplier says in it. */
function unitsOf({ status, sent }: { readonly status: number; readonly sent: Exchange | undefined }) {
  if (status !== 200 || sent === undefined) return { input_tokens: 0, output_tokens: 0, tokens: 0 }
  const { input_tokens: input, output_tokens: output } = sent.bill
  const { cached, reasoning } = detailsOf(sent.bill)
  const both = { ...sent.bill, tokens: input + output }
  if (sent.path === '/v1/embeddings') return both
  if (sent.path === '/v1/messages') return { ...messageUsage(sent.bill), ...both }
  return { ...both, cache_read_input_tokens: cached, reasoning_output_tokens: reasoning }
}

test.each(names)('%s leaves in the records what the supplier bills', async (name) => {
  const { pairs } = await outcomeOf(name)
  const metered = pairs.filter(({ sent }) => !/models|count_tokens/.test(sent?.path ?? ''))
  const ids = new Set(metered.map(({ decision }) => decision ?? ''))
  const settlements = await readDecisions(
    kafka,
    ({ corrects = '' }) => ids.has(corrects),
    (all) => all.length === ids.size,
  )
  const found = metered.map(({ decision }) => settlements.find(({ corrects }) => corrects === decision))
  const expected = metered.map((one) => ({ basis: 'reported', units: unitsOf(one) }))
  expect(found.map((one) => ({ basis: one?.basis, units: one?.units }))).toEqual(expected)
})

test.each(['auto', 'legacy'])('mcp of PyPI (%s): calls of tools count, and nothing else does', async (mode) => {
  const lines = await runClient('mcp-client.py', [`${ingress.proxy}/mcp`, `vk-${mode}`, mode, '4'], {})
  const answers = Array.from({ length: 3 }, () => 'sunny in Paris')
  expect(lines).toEqual([
    ['weather'],
    ...answers,
    { code: -32_029, message: expect.stringMatching(/^The limit calls is used up/) },
  ])
  const isCall = ({
    subject,
    units,
    outcome,
  }: {
    subject: string
    units?: Readonly<Record<string, number>>
    outcome: string
  }) => subject === mode && outcome === 'allow' && (units?.calls ?? 0) > 0
  const found = await readDecisions(kafka, isCall, (all) => all.length === 3)
  expect(found.map(({ units, dims }) => [units, dims])).toEqual(answers.map(() => [{ calls: 1 }, { tool: 'weather' }]))
})
