import { denied } from '@weir/core/limits/decision.ts'
import type { Refusal } from '@weir/core/limits/refusal.ts'
import { buildLimit } from '@weir/core/limits/testing/build-limit.ts'
import { expect, it, onTestFinished } from 'vitest'
import { openMemoryIngress, sha256 } from '../testing/memory-ingress.ts'
import { ownBodyOf, ownRefusalOf } from './own-refusal.ts'

const refusal = { contentType: 'text/plain', body: '{{limit}} {{reason}} {{retry_after}} "{{decision}}"' }
const none = { refusals: new Map<string, Refusal>() }
const recorded = (reason: Parameters<typeof denied>[0], { deniedBy = 'minute', retryAfterMs = 1_500 } = {}) => ({
  id: undefined,
  decision: { ...denied(reason, { retryAfterMs }), deniedBy },
  limits: [buildLimit({ name: 'minute', refusals: { limit: { ...refusal, body: 'of the limit' } } })],
})

it("answers each kind of refusal, and nothing else, in the policy's own words", () => {
  const says = (one: ReturnType<typeof recorded>, kind: string) =>
    ownBodyOf(one, ownRefusalOf(one, { refusals: { [kind]: refusal } }, none))?.bytes.toString()
  expect(says(recorded('limit'), 'limit')).toBe('minute limit 2 ""')
  expect(says(recorded('blocked'), 'limit')).toBe('minute blocked 2 ""')
  expect(says(recorded('unauthorized', { deniedBy: '', retryAfterMs: 0 }), 'unauthorized')).toBe(' unauthorized 1 ""')
  expect(says(recorded('cost_exceeds_limit'), 'cost')).toBe('minute cost_exceeds_limit 2 ""')
  for (const reason of ['unavailable', 'journal_full'] as const) {
    expect(says(recorded(reason), 'unavailable')).toBe(`minute ${reason} 2 ""`)
    expect(says(recorded(reason), 'limit')).toBeUndefined()
  }
  // Too many markers and too many wrong credentials are bounds of Weir's own.
  expect(says(recorded('limit', { deniedBy: '_markers' }), 'limit')).toBeUndefined()
  expect(says(recorded('unauthorized', { deniedBy: '' }), 'unauthorized')).toBeUndefined()
  expect(ownBodyOf(recorded('limit'), { contentType: 'application/json', dialect: 'none' })).toBeUndefined()
})

it("a route's answer comes before that of the limit, and that before the one for everybody", () => {
  const policy = { refusals: new Map([['limit', { ...refusal, body: 'for all' }]]) }
  const own = { refusals: { limit: { ...refusal, body: 'of the route' } } }
  const bodyOf = (deniedBy: string, route: object) => ownRefusalOf(recorded('limit', { deniedBy }), route, policy)?.body
  expect(bodyOf('minute', own)).toBe('of the route')
  expect(bodyOf('minute', { refusals: { cost: refusal } })).toBe('of the limit')
  expect(bodyOf('other', {})).toBe('for all')
})

it('a body that names no value is the same bytes for every request', () => {
  const fixed = { contentType: 'text/plain', body: 'wait' }
  const bytesOf = (one: Refusal) => ownBodyOf(recorded('limit'), one)?.bytes
  expect(bytesOf(fixed)).toBe(bytesOf(fixed))
  expect(bytesOf(refusal)).not.toBe(bytesOf(refusal))
})

const policyText = `
version: 1
plans: { free: { limits: [minute] } }
limits:
  minute: { algorithm: fixed_window, size: 1, window: 1m, refusal: { status: 420, body: '{ "code": "{{limit}}" }' } }
refusals:
  unauthorized: { status: 403, setHeaders: { X-Error-Code: no_key, Access-Control-Allow-Origin: "*" }, body: '{ "code": "no_key" }' }
  cost: { status: 400, body: '{ "code": "too_dear" }' }
  limit: { status: 503, body: '{ "code": "for_all" }' }
  unavailable: { status: 500, body: '{ "code": "later" }' }
routes:
  - { match: GET /own, refusals: { limit: { status: 503, setHeaders: { x-own: "1" } } } }
  - { match: GET /dear, cost: 2 }
  - { match: GET /hidden, refusals: { unauthorized: { status: 404, contentType: text/plain, body: nothing here } } }
upstreams: { demo: { url: "http://127.0.0.1:9" } }
subjects: { acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}" }] } }
identity: { trustedProxies: [127.0.0.1/32] }
`

/** Status, code and own headers of a request at a gateway. */
async function openGateway() {
  const { api, decisions } = await openMemoryIngress(policyText)
  const ask = async (path: string, key = 'acme-key', query = '') => {
    const headers = { 'x-api-key': key, 'x-original-method': 'GET', 'x-original-uri': path }
    return api.inject({ method: 'GET', url: `/v1/authorize${query}`, headers })
  }
  return { ask, decisions }
}

it('a gateway gets the status, headers and body of each kind, and no 5xx for what is refused with 4xx', async () => {
  const { ask, decisions } = await openGateway()
  const unknown = await ask('/a', 'wrong')
  expect([unknown.statusCode, unknown.headers['x-error-code'], unknown.json()]).toEqual([
    403,
    'no_key',
    { code: 'no_key' },
  ])
  expect(unknown.headers).toMatchObject({ 'www-authenticate': 'Bearer', 'access-control-allow-origin': '*' })
  const hidden = await ask('/hidden', 'wrong')
  expect([hidden.statusCode, hidden.headers['content-type'], hidden.body]).toEqual([404, 'text/plain', 'nothing here'])
  const dear = await ask('/dear')
  expect([dear.statusCode, dear.json()]).toEqual([400, { code: 'too_dear' }])
  expect((await ask('/a')).statusCode).toBe(200)
  const used = await ask('/a')
  expect([used.statusCode, used.json(), Number(used.headers['retry-after'])]).toEqual([420, { code: 'minute' }, 50])
  const failsOpen = await ask('/own')
  expect([failsOpen.statusCode, failsOpen.headers['x-own'], failsOpen.json().status]).toEqual([429, '1', 429])
  const translated = await ask('/a', 'acme-key', '?deny_status=403')
  expect([translated.statusCode, translated.headers['x-limit-status']]).toEqual([403, '420'])
  decisions.isFull = true
  const full = await ask('/a')
  expect([full.statusCode, full.json()]).toEqual([429, { code: 'later' }])
})

it('a client of the proxy gets the status, headers and body of each kind', async () => {
  const { proxy, decisions } = await openMemoryIngress(policyText)
  onTestFinished(() => proxy.close())
  const ask = (url: string, key = 'acme-key') => proxy.inject({ method: 'GET', url, headers: { 'x-api-key': key } })
  const unknown = await ask('/a', 'wrong')
  expect([unknown.statusCode, unknown.headers['x-error-code'], unknown.json()]).toEqual([
    403,
    'no_key',
    { code: 'no_key' },
  ])
  const hidden = await ask('/hidden', 'wrong')
  expect([hidden.statusCode, hidden.headers['content-type'], hidden.body]).toEqual([404, 'text/plain', 'nothing here'])
  const dear = await ask('/dear')
  expect([dear.statusCode, dear.json()]).toEqual([400, { code: 'too_dear' }])
  await ask('/a')
  const used = await ask('/a')
  expect([used.statusCode, used.json(), used.headers['retry-after']]).toEqual([420, { code: 'minute' }, '50'])
  const own = await ask('/own')
  expect([own.statusCode, own.headers['x-own'], own.json().status]).toEqual([503, '1', 503])
  decisions.isFull = true
  const full = await ask('/b', 'acme-key')
  expect([full.statusCode, full.json()]).toEqual([500, { code: 'later' }])
})
