import { Validator } from '@seriousme/openapi-schema-validator'
import { reasons } from '@weir/core/limits/decision.ts'
import { type RateLimitDialect, rateLimitDialects } from '@weir/core/limits/rate-limit-headers.ts'
import type { SettlementResult } from '@weir/core/limits/settlement.ts'
import type { Pauses } from '@weir/decide/ports.ts'
import { memoryPorts, openMemoryIngress, sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import type { InjectOptions } from 'fastify'
import { expect, it } from 'vitest'
import { type Answer, type AnswerCheck, createAnswerChecks, type OpenApiDocument } from '../support/openapi-answers.ts'

const policyText = `
version: 1
plans: { free: { limits: [minute] }, drop: { limits: [drop] }, degrade: { limits: [degrade] }, challenge: { limits: [challenge] }, block: { limits: [block] }, delay: { limits: [delay] } }
limits:
  minute: { algorithm: fixed_window, size: 200, window: 1m }
  drop: { algorithm: fixed_window, size: 1, window: 1d, onExceed: drop }
  degrade: { algorithm: fixed_window, size: 1, window: 1d, onExceed: degrade }
  challenge: { algorithm: fixed_window, size: 1, window: 1d, onExceed: { challenge: "https://example.com/" } }
  block: { algorithm: fixed_window, size: 1, window: 1d, block: 10m, onExceed: block }
  delay: { algorithm: fixed_window, size: 1, window: 1d, onExceed: delay }
routes: [{ match: POST /v1/bulk, cost: "json:/items" }]
upstreams: { gone: { url: "http://127.0.0.1:1", hosts: [gone.test] } }
subjects:
  acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}" }] }
  globex: { plan: free, keys: [{ sha256: "${sha256('globex-key')}" }] }
${['drop', 'degrade', 'challenge', 'block', 'delay'].map((name) => `  ${name}: { plan: ${name}, keys: [{ sha256: "${sha256(name)}" }] }`).join('\n')}
tokens: { reader: { sha256: "${sha256('read-token')}", scopes: [read] } }
`

async function open(dialect: RateLimitDialect) {
  const { store } = memoryPorts(policyText)
  const pauses: Pauses = { pause: store.pause.bind(store) }
  const settled: { result: SettlementResult } = { result: { kind: 'unknown' } }
  const settlements = {
    settle: async () => settled.result,
    confirmRecorded: async () => true,
    renew: async () => ({ kind: 'unknown' }) as const,
  }
  const apps = await openMemoryIngress(policyText, { store, pauses, settlements, dialect })
  const { decisions } = apps
  const document: OpenApiDocument = (await apps.api.inject('/openapi.json')).json()
  return { ...apps, decisions, settled, pauses, document, checks: createAnswerChecks(document) }
}

const key = { 'x-api-key': 'acme-key' }
const root = { authorization: 'Bearer root' }

it('the document is OpenAPI 3.1 and has every route of the api listener, and no other', async () => {
  const { api, document } = await open('draft10')
  expect(document.components.schemas).toMatchObject({ CheckResult: { properties: { reason: { enum: reasons } } } })
  const validity = await new Validator().validate({ ...document })
  expect([validity.valid, validity.errors]).toEqual([true, undefined])
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
  )
  expect(operations.filter(({ path, method }) => !api.hasRoute({ url: path, method }))).toEqual([])
  const above: string[] = []
  const routed = api
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const found = /^([^/]*)(\/\S*)( \()?/.exec(line)
      if (found === null) return []
      const depth = (found[1] ?? '').length / 4
      above.splice(depth - 1, above.length, `${above[depth - 2] ?? ''}${found[2]}`)
      return found[3] === undefined ? [] : [above[depth - 1] ?? '']
    })
  const paths = [...new Set(routed.map((path) => path.replace(/(?<=.)\/$/, '')))]
  expect(paths.toSorted()).toEqual([...Object.keys(document.paths), '/openapi.json'].toSorted())
})

it.each(rateLimitDialects)(
  '200 allowed and 200 denied answers of every door are as described, in %s',
  async (dialect) => {
    for (const door of ['check', 'batch', 'authorize', 'proxy'] as const) {
      const { api, proxy, decisions, checks } = await open(dialect)
      const doors: Record<typeof door, readonly [(headers: Record<string, string>) => Promise<Answer>, AnswerCheck]> = {
        check: [
          (headers) => api.inject({ method: 'POST', url: '/v1/check', headers, payload: {} }),
          checks.route('POST', '/v1/check'),
        ],
        batch: [
          (headers) =>
            api.inject({
              method: 'POST',
              url: '/v1/check/batch',
              headers,
              payload: { checks: [{}, 1], headers: true },
            }),
          checks.route('POST', '/v1/check/batch'),
        ],
        authorize: [
          (headers) => api.inject({ method: 'GET', url: '/v1/authorize/x', headers }),
          checks.route('GET', '/v1/authorize'),
        ],
        proxy: [
          (headers) => proxy.inject({ method: 'GET', url: '/x', headers: { host: 'gone.test', ...headers } }),
          checks.proxy,
        ],
      }
      const [ask, wrongIn] = doors[door]
      const expectRight = (answer: Answer, status: number) =>
        expect([door, answer.statusCode, wrongIn(answer)]).toEqual([door, status, []])
      const isQuestion = door === 'check' || door === 'batch'
      const allowed = door === 'proxy' ? 502 : 200
      for (let n = 0; n < 200; n += 1) expectRight(await ask(key), allowed)
      for (let n = 0; n < 200; n += 1) expectRight(await ask(key), isQuestion ? 200 : 429)
      expectRight(await ask({}), 401)
      expectRight(await ask({ ...root, 'x-api-key': 'wrong' }), isQuestion ? (door === 'check' ? 400 : 200) : 401)
      decisions.isFull = true
      expectRight(await ask({ 'x-api-key': 'globex-key' }), door === 'batch' ? 200 : 503)
      if (isQuestion) expectRight(await ask({ authorization: 'Bearer read-token' }), 403)
    }
  },
)

it('what is wrong is refused as described, and HEAD has no body', async () => {
  const { api, proxy, checks } = await open('draft10')
  const [check, batch] = ['/v1/check', '/v1/check/batch'].map((path) => checks.route('POST', path))
  const headers = { ...key, 'content-type': 'application/json' }
  const post = { method: 'POST', headers } as const
  const asText = { ...post, headers: { ...key, 'content-type': 'text/plain' }, payload: '{}' } as const
  const large = JSON.stringify({ items: 'x'.repeat(300_000) })
  const authorize = checks.route('GET', '/v1/authorize')
  const refused: [number, AnswerCheck | undefined, InjectOptions & { readonly isProxied?: boolean }][] = [
    [400, checks.proxy, { url: '/a%2Fb', headers, isProxied: true }],
    [413, checks.proxy, { ...post, url: '/v1/bulk', payload: large, isProxied: true }],
    [404, checks.proxy, { url: '/', headers: { ...headers, host: 'unknown.test' }, isProxied: true }],
    [401, checks.proxy, { method: 'HEAD', url: '/', isProxied: true }],
    [400, authorize, { url: '/v1/authorize/a%2Fb', headers }],
    [200, authorize, { method: 'HEAD', url: '/v1/authorize/x', headers }],
    [401, authorize, { method: 'HEAD', url: '/v1/authorize/x' }],
    [400, check, { ...post, url: '/v1/check', payload: '{' }],
    [413, check, { ...post, url: '/v1/check', payload: large }],
    [415, check, { ...asText, url: '/v1/check' }],
    [400, batch, { ...post, url: '/v1/check/batch', payload: '{"checks":[]}' }],
    [413, batch, { ...post, url: '/v1/check/batch', payload: large }],
    [415, batch, { ...asText, url: '/v1/check/batch' }],
    [404, checks.problem, { url: '/nowhere', headers }],
    [405, checks.problem, { url: '/v1/check', headers }],
  ]
  for (const [at, [status, wrongIn, { isProxied, ...sent }]] of refused.entries()) {
    const answer = await (isProxied === true ? proxy : api).inject(sent)
    expect([at, answer.statusCode, wrongIn?.(answer)]).toEqual([at, status, []])
    if (sent.method === 'HEAD') expect(answer.body).toBe('')
  }
})

it('what is answered beyond a limit is as described, whatever the policy wants done', async () => {
  const { api, proxy, checks } = await open('draft10')
  const wrongIn = checks.route('POST', '/v1/check')
  for (const name of ['drop', 'degrade', 'challenge', 'block', 'delay']) {
    const headers = { 'x-api-key': name }
    for (const payload of [{}, {}, { wait: '1ms' }]) {
      const answer = await api.inject({ method: 'POST', url: '/v1/check', headers, payload })
      expect([name, answer.statusCode, wrongIn(answer)]).toEqual([name, 200, []])
    }
    const asked = await api.inject({ url: '/v1/authorize/x', headers })
    const status = name === 'degrade' ? 200 : 429
    expect([name, asked.statusCode, checks.route('GET', '/v1/authorize')(asked)]).toEqual([name, status, []])
  }
  const page = { 'x-api-key': 'challenge', accept: 'text/html' }
  const sent = await proxy.inject({ url: '/x', headers: page })
  expect([sent.statusCode, checks.proxy(sent)]).toEqual([303, []])
})

it('every answer to the wish to pause a limit is as described', async () => {
  const { api, checks, pauses } = await open('draft10')
  const wrongIn = checks.route('POST', '/v1/pause')
  const ask = async (payload: object, headers: Record<string, string> = { 'x-api-key': 'delay' }) => {
    const answer = await api.inject({ method: 'POST', url: '/v1/pause', headers, payload })
    return [answer.statusCode, wrongIn(answer)]
  }
  const wish = { limit: 'delay', for: '30s' }
  expect(await ask(wish)).toEqual([200, []])
  expect(await ask({ ...wish, limit: 'drop' })).toEqual([400, []])
  expect(await ask({ ...wish, subject: 'acme' })).toEqual([403, []])
  expect(await ask(wish, { 'x-api-key': 'wrong' })).toEqual([401, []])
  pauses.pause = async () => undefined
  expect(await ask(wish)).toEqual([503, []])
})

it('every answer to the wish to settle a decision is as described', async () => {
  const { api, decisions, checks, settled } = await open('draft10')
  const wrongIn = checks.route('POST', '/v1/settle')
  const settle = (payload: object, headers: Record<string, string> = key) =>
    api.inject({ method: 'POST', url: '/v1/settle', headers, payload })
  const ask = async (...wish: Parameters<typeof settle>) => {
    const answer = await settle(...wish)
    return [answer.statusCode, wrongIn(answer)]
  }
  const wish = { id: '019abcde-0000-7000-8000-000000000000', cost: 7 }
  expect(await ask(wish)).toEqual([404, []])
  const context = JSON.stringify({ tsMs: 0, keyId: '', plan: 'free', route: '*', method: '*' })
  const limits = [{ name: 'minute', size: 9, used: 1, remaining: 8, resetMs: 5 }]
  const done = {
    kind: 'settled',
    cost: 7,
    chargedCost: 9,
    context,
    limits,
    settledAtUs: 1_000,
    isRecordPending: true,
  } as const
  settled.result = done
  expect(await ask(wish)).toEqual([200, []])
  settled.result = { ...done, chargedCost: 7, isRecordPending: false }
  expect(await ask(wish)).toEqual([200, []])
  settled.result = { kind: 'conflict', cost: 3 }
  expect(await ask(wish)).toEqual([409, []])
  expect((await settle(wish)).json().settled_cost).toBe(3)
  settled.result = { kind: 'busy', retryAfterMs: 40_000 }
  expect(await ask(wish)).toEqual([503, []])
  expect((await settle(wish)).headers['retry-after']).toBe('40')
  settled.result = { kind: 'unavailable' }
  expect(await ask(wish)).toEqual([503, []])
  settled.result = done
  decisions.isFull = true
  expect(await ask({ ...wish, id: wish.id.replace('0000', '0001') })).toEqual([503, []])
  expect(await ask(wish, { 'x-api-key': 'wrong' })).toEqual([503, []])
  decisions.isFull = false
  expect(await ask({ ...wish, subject: 'globex' })).toEqual([403, []])
  expect(await ask(wish, root)).toEqual([400, []])
  expect(await ask(wish, { 'x-api-key': 'wrong' })).toEqual([401, []])
})
