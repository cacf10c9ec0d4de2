import { signAddress } from '@weir/policy/address-token.ts'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, it } from 'vitest'
import {
  knownAlert,
  knownBlock,
  knownChange,
  knownDecision,
  openConsole,
  openWithPolicy,
} from './testing/open-console.ts'

interface Media {
  readonly schema: object
}
interface Operation {
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>
}
interface OpenApi {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const unknownAlert = '00000000-0000-0000-0000-000000000001'

const lines = [{ name: 'all', measure: 'units', tiers: [{ up_to: 5, unit_amount: '1' }, { unit_amount: '0.5' }] }]
const priceList = { currency: 'EUR', lines }

const unsubscribeKey = 'a key that is long enough to sign mails'
const link = `/unsubscribe/${signAddress([unsubscribeKey], 'unsubscribe', { subject: 'acme', addressHash: '0123456789ab' })}`

/** Every route once as it succeeds, and once for each way in which it fails that its description names. */
const asked: readonly (readonly [request: string, path: string, options?: object])[] = [
  ['/v1/usage', '/v1/usage'],
  ['/v1/usage?step=never', '/v1/usage'],
  ['/v1/usage?unit=tokens&by=unit,dimension.tag', '/v1/usage'],
  ['/v1/usage?unit=tokens&outcome=allow', '/v1/usage'],
  ['POST /v1/usage', '/v1/usage', { body: { unit: ['tokens', 'usd'], 'dimension.model': ['small'] } }],
  ['/v1/usage?format=csv', '/v1/usage'],
  ['POST /v1/usage', '/v1/usage', { body: { subject: ['acme'], limit: 7 } }],
  ['POST /v1/usage', '/v1/usage', { body: { step: 'never' } }],
  ['POST /v1/outcomes', '/v1/outcomes', { body: {} }],
  ['/v1/outcomes?format=jsonl', '/v1/outcomes'],
  ['/v1/outcomes', '/v1/outcomes'],
  ['/v1/outcomes?by=plan', '/v1/outcomes'],
  ['/v1/dimensions/route?prefix=GET', '/v1/dimensions/{name}'],
  ['/v1/dimensions/route?from=never', '/v1/dimensions/{name}'],
  ['/v1/dimensions/colour', '/v1/dimensions/{name}'],
  ['/v1/utilization?order=-refused&limit=5', '/v1/utilization'],
  ['/v1/utilization?order=used', '/v1/utilization'],
  ['/v1/search?q=acme', '/v1/search'],
  ['/v1/search', '/v1/search'],
  ['/v1/alerts?subject=acme&limit=1', '/v1/alerts'],
  ['/v1/alerts?from=never', '/v1/alerts'],
  [`/v1/alerts/${knownAlert}`, '/v1/alerts/{id}'],
  [`/v1/alerts/${unknownAlert}`, '/v1/alerts/{id}'],
  [`POST /v1/alerts/${knownAlert}/redeliver`, '/v1/alerts/{id}/redeliver'],
  [`POST /v1/alerts/${knownAlert}/redeliver`, '/v1/alerts/{id}/redeliver', { body: { endpoint: 'nobody' } }],
  ['POST /v1/deliveries/redeliver', '/v1/deliveries/redeliver', { body: { from: '2026-11-20T00:00:00Z' } }],
  ['POST /v1/deliveries/redeliver', '/v1/deliveries/redeliver', { body: { from: '2027-11-20T00:00:00Z' } }],
  ['/v1/subjects/acme/own-alerts', '/v1/subjects/{id}/own-alerts'],
  ['/v1/subjects/nobody:x/own-alerts', '/v1/subjects/{id}/own-alerts'],
  [
    'PUT /v1/subjects/acme/own-alerts',
    '/v1/subjects/{id}/own-alerts',
    { body: { addresses: ['a@b.example'], percents: [50] } },
  ],
  ['/v1/endpoints/ops/secret', '/v1/endpoints/{name}/secret'],
  ['POST /v1/endpoints/ops/test', '/v1/endpoints/{name}/test'],
  ['POST /v1/endpoints/nobody/test', '/v1/endpoints/{name}/test'],
  ['/v1/policy', '/v1/policy'],
  ['/v1/policy?subject=nobody', '/v1/policy'],
  ['PUT /v1/policy?dry_run=true', '/v1/policy', { body: 'version: 1\n' }],
  ['PUT /v1/policy', '/v1/policy', { body: 'version: 2\n' }],
  ['POST /v1/policy/impact', '/v1/policy/impact', { body: 'version: 1\n' }],
  ['POST /v1/policy/impact?top=5', '/v1/policy/impact', { body: 'version: 1\n' }],
  ['POST /v1/policy/impact?from=now-8d', '/v1/policy/impact', { body: 'version: 1\n' }],
  ['POST /v1/policy/impact', '/v1/policy/impact', { body: 'version: 2\n' }],
  [
    'POST /v1/limits/minute/impact',
    '/v1/limits/{name}/impact',
    { body: { settings: { algorithm: 'fixed_window', size: 7, window: '1m' } } },
  ],
  ['POST /v1/limits/minute/impact', '/v1/limits/{name}/impact', { body: { settings: { size: 'x' } } }],
  ['POST /v1/limits/none/impact', '/v1/limits/{name}/impact', { body: { settings: {} } }],
  ['POST /v1/blocks', '/v1/blocks', { body: { ip: '192.0.2.1', for: '1h' } }],
  ['POST /v1/blocks', '/v1/blocks', { body: { ip: '192.0.2.1/8', for: '1h' } }],
  ['PUT /v1/policy', '/v1/policy', { body: 'version: 1\n', token: 'reader-token' }],
  ...[
    'plans',
    'prices',
    'rateCards',
    'limits',
    'routes',
    'refusals',
    'upstreams',
    'meters',
    'endpoints',
    'watches',
    'unsubscribed',
    'subjects',
  ].flatMap((path) => [
    [`/v1/${path}?limit=1`, `/v1/${path}`] as const,
    [`/v1/${path}?limit=0`, `/v1/${path}`] as const,
    [`/v1/${path}/nothing`, `/v1/${path}/{name}`] as const,
    [`DELETE /v1/${path}/nothing`, `/v1/${path}/{name}`] as const,
    [`PUT /v1/${path}/new`, `/v1/${path}/{name}`, { body: { colour: 'red' } }] as const,
  ]),
  ['PUT /v1/prices/api', '/v1/prices/{name}', { body: priceList }],
  ['POST /v1/prices/api/quote', '/v1/prices/{name}/quote', { body: { usage: [{ units: 7 }] } }],
  ['POST /v1/prices/api/quote', '/v1/prices/{name}/quote', { body: {} }],
  ['POST /v1/prices/none/quote', '/v1/prices/{name}/quote', { body: { usage: [] } }],
  ['PUT /v1/subjects/payer', '/v1/subjects/{name}', { body: { plan: 'free', prices: 'api' } }],
  ['/v1/spend?subject=payer', '/v1/spend'],
  ['/v1/spend?subject=acme', '/v1/spend'],
  ['/v1/spend', '/v1/spend'],
  ['/v1/spend/month?period=2026-10', '/v1/spend/month'],
  ['/v1/spend/month?period=soon', '/v1/spend/month'],
  ['/v1/usage/export?from=2026-11-01', '/v1/usage/export'],
  ['/v1/usage/export', '/v1/usage/export'],
  ['/v1/identity', '/v1/identity'],
  ['PUT /v1/identity', '/v1/identity', { body: { anonymous: 'none' } }],
  ['PUT /v1/identity', '/v1/identity', { body: { anonymous: 'free' } }],
  ['PUT /v1/identity', '/v1/identity', { body: {}, token: 'writer-token' }],
  ['/v1/identity', '/v1/identity'],
  ['DELETE /v1/identity', '/v1/identity', { headers: { 'if-match': '"x"' } }],
  ['DELETE /v1/identity', '/v1/identity'],
  ['/v1/plans/free', '/v1/plans/{name}'],
  ['PUT /v1/plans/free', '/v1/plans/{name}', { body: { limits: [] } }],
  ['PUT /v1/plans/team', '/v1/plans/{name}', { body: { limits: [] } }],
  ['PUT /v1/plans/team', '/v1/plans/{name}', { body: { limits: [] }, headers: { 'if-match': '"x"' } }],
  ['DELETE /v1/plans/team', '/v1/plans/{name}'],
  ['POST /v1/subjects/acme/keys', '/v1/subjects/{id}/keys', { body: { id: 'ci' } }],
  ['POST /v1/subjects/acme/keys', '/v1/subjects/{id}/keys', { body: { id: 'ci' } }],
  ['/v1/keys', '/v1/keys'],
  ['POST /v1/keys/ci/rotate', '/v1/keys/{id}/rotate'],
  ['DELETE /v1/keys/ci', '/v1/keys/{id}'],
  ['DELETE /v1/keys/ci', '/v1/keys/{id}'],
  ['/v1/subjects/acme/limits?route=POST%20/v1/search', '/v1/subjects/{id}/limits'],
  ['/v1/subjects/nobody/limits', '/v1/subjects/{id}/limits'],
  ['POST /v1/subjects/acme/limits/reset', '/v1/subjects/{id}/limits/reset'],
  ['POST /v1/subjects/acme/limits/unblock', '/v1/subjects/{id}/limits/unblock', { body: { limit: 'x' } }],
  ['POST /v1/subjects/acme/portal', '/v1/subjects/{id}/portal', { body: { expires_in: '7d' } }],
  ['POST /v1/subjects/acme/portal', '/v1/subjects/{id}/portal', { body: { expires_in: '8d' } }],
  ['POST /v1/subjects/nobody/portal', '/v1/subjects/{id}/portal'],
  ['DELETE /v1/subjects/acme/portal', '/v1/subjects/{id}/portal'],
  ['DELETE /v1/subjects/nobody/portal', '/v1/subjects/{id}/portal'],
  ['POST /v1/silences', '/v1/silences', { body: { subjects: ['acme'], for: '2h', reason: 'load test' } }],
  ['POST /v1/silences', '/v1/silences', { body: { subjects: ['acme'], for: '31d' } }],
  ['POST /v1/silences', '/v1/silences', { body: { for: '2h' } }],
  ['/v1/silences', '/v1/silences'],
  ['DELETE /v1/silences/none', '/v1/silences/{name}'],
  ['POST /v1/tokens', '/v1/tokens', { body: { name: 'mine', scopes: ['usage'], subjects: ['acme'] } }],
  ['POST /v1/tokens', '/v1/tokens', { body: { name: 'odd', scopes: ['read'], subjects: ['acme'] } }],
  ['POST /v1/tokens', '/v1/tokens', { body: { name: 'ci', scopes: ['read'] } }],
  ['POST /v1/tokens', '/v1/tokens', { body: { name: 'ci', scopes: ['read'] } }],
  ['/v1/tokens', '/v1/tokens'],
  ['DELETE /v1/tokens/ci', '/v1/tokens/{name}'],
  ['DELETE /v1/tokens/ci', '/v1/tokens/{name}'],
  ['/v1/decisions?limit=5&status=200&corrected=true&unsettled=true', '/v1/decisions'],
  ['/v1/decisions?status=ok', '/v1/decisions'],
  ['/v1/decisions/stream?of=all', '/v1/decisions/stream'],
  [`/v1/decisions/${knownDecision}`, '/v1/decisions/{id}'],
  ['/v1/decisions/x', '/v1/decisions/{id}'],
  ['/v1/decisions/01a20287-6fb6-7000-8000-000000000000', '/v1/decisions/{id}'],
  ['/v1/blocks?limit=per-ip', '/v1/blocks'],
  ['/v1/blocks?ip=here', '/v1/blocks'],
  [`POST /v1/blocks/${knownBlock}/lift`, '/v1/blocks/{id}/lift', { body: { forget: true } }],
  ['POST /v1/blocks/none/lift', '/v1/blocks/{id}/lift'],
  ['/v1/status', '/v1/status'],
  ['/v1/changes?limit=2', '/v1/changes'],
  [`/v1/changes/${knownChange}`, '/v1/changes/{id}'],
  ['/v1/changes/x', '/v1/changes/{id}'],
  ['/v1/changes', '/v1/changes', { token: 'writer-token' }],
  ['/v1/plans', '/v1/plans', { token: 'nobody' }],
  ['POST /session', '/session', { body: { token: 'token' }, headers: { 'sec-fetch-site': 'same-origin' } }],
  ['POST /session', '/session', { body: { token: 'token' } }],
  ['/session', '/session'],
  ['DELETE /session', '/session'],
  ['/confirm/unknown', '/confirm/{token}'],
  ['POST /confirm/unknown', '/confirm/{token}', { body: 'x' }],
  [link, '/unsubscribe/{token}'],
  ['/unsubscribe/x', '/unsubscribe/{token}'],
  [`POST ${link}`, '/unsubscribe/{token}', { body: 'List-Unsubscribe=One-Click' }],
  ['POST /unsubscribe/x', '/unsubscribe/{token}'],
  [`POST ${link}`, '/unsubscribe/{token}', { body: 'x'.repeat(5_000) }],
]

it('describes itself as OpenAPI 3.1, and every answer is as described', async () => {
  const { ask } = await openWithPolicy({ unsubscribeKey: () => unsubscribeKey })
  const api: OpenApi = (await ask('/openapi.json')).json()
  expect(api.openapi).toBe('3.1.0')
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { uuid: true } })
  const met = new Set<string>()
  for (const [request, path, options = {}] of asked) {
    const answer = await ask(request, options)
    const method = /^(PUT|POST|DELETE) /.exec(request)?.[1]?.toLowerCase() ?? 'get'
    const described = api.paths[path]?.[method]?.responses[answer.statusCode]
    expect([request, answer.statusCode, described !== undefined]).toEqual([request, answer.statusCode, true])
    met.add(`${method} ${path}`)
    if (answer.body === '') continue
    const type = String(answer.headers['content-type']).split(';')[0] ?? ''
    const schema = described?.content?.[type]?.schema
    expect([request, type, schema !== undefined]).toEqual([request, type, true])
    const isRight = ajv.compile(schema ?? {})
    const said = type === 'text/html' ? answer.body : answer.json()
    expect([request, isRight(said), isRight.errors]).toEqual([request, true, null])
  }
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((one) => `${one} ${path}`),
  )
  expect([...met].toSorted()).toEqual(all.toSorted())
})

it('every path answers a method that it does not have with 405, and says which it has', async () => {
  const { ask } = openConsole()
  const api: OpenApi = (await ask('/openapi.json')).json()
  for (const [path, operations] of Object.entries(api.paths)) {
    const described = Object.keys(operations).map((method) => method.toUpperCase())
    const answer = await ask(`PATCH ${path.replaceAll(/\{\w+\}/g, 'x')}`)
    expect([path, answer.statusCode, answer.json().type]).toEqual([path, 405, 'urn:weir:problem:method-not-allowed'])
    const allowed = String(answer.headers.allow).split(', ')
    expect([path, allowed.filter((method) => method !== 'HEAD')]).toEqual([path, described.toSorted()])
  }
  expect((await ask('PATCH /v1/usage', { token: '' })).statusCode).toBe(401)
  const headers = { 'content-type': 'text/plain' }
  expect((await ask('PATCH /v1/usage', { body: '{', headers })).statusCode).toBe(405)
})

const bodyOf = ({ requestBody }: Operation) => Object.values(requestBody?.content ?? {})[0]?.schema ?? {}

it('describes the parts of a policy by the rules of the file, and bodies that may be left out as such', async () => {
  const { ask } = await openWithPolicy()
  const { paths }: OpenApi = (await ask('/openapi.json')).json()
  const ajv = new Ajv2020({ strict: false, formats: { uuid: true } })
  for (const path of ['plans', 'limits', 'routes', 'upstreams', 'endpoints', 'subjects']) {
    const { items } = (await ask(`/v1/${path}`)).json()
    const put = paths[`/v1/${path}/{name}`]?.put
    expect([path, items.length > 0, put?.requestBody?.required]).toEqual([path, true, true])
    const isRight = ajv.compile(put === undefined ? {} : bodyOf(put))
    const wrong = { ...items[0].body, colour: 'red' }
    expect([path, items.map(({ body }: { body: object }) => isRight(body))]).toEqual([path, items.map(() => true)])
    expect([path, isRight(wrong)]).toEqual([path, false])
  }
  expect(paths['/v1/subjects/{id}/keys']?.post?.requestBody?.required).toBe(false)
})

it('takes no null for a number, and no text', async () => {
  const { ask } = await openWithPolicy()
  await ask('PUT /v1/prices/api', { body: priceList })
  for (const units of [null, '7', true]) {
    expect((await ask('POST /v1/prices/api/quote', { body: { usage: [{ units }] } })).statusCode).toBe(400)
  }
})
