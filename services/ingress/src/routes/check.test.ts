import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { costMax } from '@weir/core/limits/limit-store.ts'
import { type RateLimitDialect, rateLimitDialects } from '@weir/core/limits/rate-limit-headers.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, it, onTestFinished } from 'vitest'
import { openMemoryIngress, sha256 } from '../testing/memory-ingress.ts'

const policyText = `
version: 1
identity: { anonymous: free }
plans: { free: { limits: [minute, day] } }
limits:
  minute: { algorithm: fixed_window, size: 6, window: 1m }
  day: { algorithm: fixed_window, size: 600, period: day }
routes: [ { match: "POST /v1/search", cost: 5 }, { match: "POST /v1/bulk", cost: "header:x-units" } ]
subjects:
  acme: { plan: free, keys: [ { sha256: "${sha256('acme-key')}" }, { sha256: "${sha256('old-key')}", expires: "2026-01-01T00:00:00Z" } ] }
tokens:
  ci: { sha256: "${sha256('ci-token')}", scopes: [check] }
  reader: { sha256: "${sha256('read-token')}", scopes: [read] }
`
const bearer = (token: string) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' })

async function open(dialect?: RateLimitDialect, onJournalFull?: 'admit', text = policyText) {
  const { api, ports, decisions, records } = await openMemoryIngress(text, { dialect, onJournalFull })
  const ask = (payload: object | string, token = 'ci-token', url = '/v1/check') =>
    api.inject({ method: 'POST', url, headers: bearer(token), payload })
  return {
    api,
    ask,
    policy: ports.policy,
    batch: (checks: unknown, token?: string) => ask({ checks } as object, token, '/v1/check/batch'),
    records,
    decisions,
  }
}

it('A token needs the scope check; an expired key and an anonymous caller are unauthenticated', async () => {
  const { api, ask } = await open()
  expect((await ask({ subject: 'acme' })).json()).toMatchObject({ allowed: true })
  const reader = await ask({ subject: 'acme' }, 'read-token')
  expect([reader.statusCode, reader.json().type]).toEqual([403, 'urn:weir:problem:scope-missing'])
  expect((await ask({ key: 'acme-key' })).json()).toMatchObject({ allowed: true, limits: [{ used: 2 }, { used: 2 }] })
  for (const key of ['old-key', 'no such key']) {
    expect((await ask({ key })).json()).toMatchObject({ allowed: false, reason: 'unauthorized' })
  }
  expect((await ask({}, 'old-key')).statusCode).toBe(401)
  expect((await api.inject({ method: 'POST', url: '/v1/check', payload: {} })).statusCode).toBe(401)
})

it('a token that the policy has no more is refused also on a connection that it was good on', async () => {
  const { api, policy } = await open()
  await api.listen({ host: '127.0.0.1', port: 0 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(async () => {
    agent.destroy()
    await api.close()
  })
  const ports = new Set<number | undefined>()
  const status = async (token: string) => {
    const { port } = api.server.address() as AddressInfo
    const sent = request({ host: '127.0.0.1', port, agent, method: 'POST', path: '/v1/check', headers: bearer(token) })
    sent.end('{"subject":"acme","cost":0}')
    const [answer] = await once(sent, 'response')
    ports.add(answer.socket.localPort)
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode
  }
  expect([await status('ci-token'), await status('ci-token'), await status('root'), await status('other')]).toEqual([
    200, 200, 200, 401,
  ])
  expect(await status('ci-token')).toBe(200)
  policy.replace(requirePolicy(policyText.replace('scopes: [check]', 'scopes: [read]'), 'weir.yaml'))
  expect([await status('ci-token'), ports.size]).toEqual([403, 1])
})

it('a check is decided by the policy that authorized it, also if another comes before its body', async () => {
  const { api, policy, ask } = await open()
  const body = (payload: string) =>
    new Readable({
      read() {
        policy.replace(requirePolicy(policyText.replace('size: 6', 'size: 2'), 'weir.yaml'))
        this.push(payload)
        this.push(null)
      },
    })
  const payload = body('{"subject":"acme","cost":3}')
  const answer = await api.inject({ method: 'POST', url: '/v1/check', headers: bearer('ci-token'), payload })
  expect(answer.json()).toMatchObject({ allowed: true, limits: [{ size: 6, used: 3 }, {}] })
  expect((await ask({ subject: 'acme', cost: 3 })).json()).toMatchObject({ allowed: false, denied_by: 'minute' })
})

it('a batch answers in order, each for itself, malformed ones with a problem', async () => {
  const { batch, records } = await open()
  const answer = await batch([
    { subject: 'acme', cost: 6 },
    { subject: 'acme' },
    { subject: 'acme', costs: 1 },
    7,
    { subject: 'nobody' },
    { key: 'old-key' },
    { subject: 'acme', cost: 0, peek: true },
  ])
  const results = answer.json().results
  expect(
    results.map((one: { allowed?: boolean; problem?: { status: number } }) => one.problem?.status ?? one.allowed),
  ).toEqual([true, false, 400, 400, 400, false, true])
  expect(records).toHaveLength(3)
})

it.each(rateLimitDialects)(
  'a batch that asks for headers has those of single checks with each result, in %s',
  async (dialect) => {
    const checks = [
      { subject: 'acme', cost: 6 },
      { subject: 'acme' },
      { key: 'old-key' },
      { subject: 'acme', cost: 0, peek: true },
      { subject: 'acme', cost: 1_000 },
    ]
    const alone = await open(dialect)
    const expected: Record<string, string>[] = []
    for (const one of checks) {
      const { headers } = await alone.ask(one)
      const names = Object.keys(headers).filter((name) => /ratelimit|weir-/.test(name))
      expected.push(Object.fromEntries(names.map((name) => [name, String(headers[name])])))
    }
    const together = await open(dialect)
    const { results } = (await together.ask({ headers: true, checks }, 'ci-token', '/v1/check/batch')).json()
    for (const [at, { id, headers }] of results.entries()) {
      expect(headers['weir-decision']).toBe(id ?? undefined)
      expect({ ...headers, 'weir-decision': '' }).toEqual({ ...expected[at], 'weir-decision': '' })
    }
    const plain = (await together.ask({ headers: false, checks }, 'ci-token', '/v1/check/batch')).json()
    expect(plain.results.map((one: object) => 'headers' in one)).toEqual(checks.map(() => false))
    expect((await together.ask({ headers: 1, checks }, 'ci-token', '/v1/check/batch')).statusCode).toBe(400)
    together.decisions.isFull = true
    const full = (await together.ask({ headers: true, checks: [{}, checks[1]] }, 'ci-token', '/v1/check/batch')).json()
    expect(full.results).toMatchObject([{ problem: { status: 400 } }, { headers: { 'retry-after': '5' } }])
  },
)

it('what cannot be recorded is 503 without an id, alone and in a batch, and charges nothing', async () => {
  const { ask, batch, decisions } = await open()
  await ask({ subject: 'acme', cost: 5 })
  decisions.isFull = true
  const reduced = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
  const checks = [{ subject: 'acme' }, { subject: 'acme', cost: 5 }, { key: 'nobody' }]
  for (const answer of await Promise.all(checks.map((one) => ask(one)))) {
    expect([answer.statusCode, answer.headers['retry-after'], answer.headers['weir-decision']]).toEqual([
      503,
      '5',
      undefined,
    ])
    expect(answer.json()).toMatchObject({ type: reduced, status: 503 })
  }
  const { results } = (await batch(checks)).json()
  expect(results).toMatchObject(checks.map(() => ({ problem: { type: reduced, status: 503 } })))
  expect((await ask({ subject: 'acme', peek: true })).json()).toMatchObject({ limits: [{ used: 5 }, { used: 5 }] })
  expect(decisions.missed).toBe(6)
})

it('where a full journal admits, what cannot be recorded is answered as decided, with null for its id', async () => {
  const { ask, decisions } = await open(undefined, 'admit')
  decisions.isFull = true
  const answers = [await ask({ subject: 'acme', cost: 5 }), await ask({ subject: 'acme', cost: 5 })]
  expect(answers.map(({ statusCode, headers }) => [statusCode, headers['weir-decision']])).toEqual(
    answers.map(() => [200, undefined]),
  )
  expect(answers.map((answer) => answer.json())).toMatchObject([
    { id: null, allowed: true },
    { id: null, allowed: false, reason: 'limit' },
  ])
})

it('a batch of peeks charges nothing, and one idempotency key twice in a batch is charged once', async () => {
  const { batch, records } = await open()
  const looks = await batch(Array.from({ length: 100 }, () => ({ subject: 'acme', cost: 6, peek: true })))
  expect(looks.json().results.at(-1)).toMatchObject({ id: null, allowed: true, limits: [{ used: 0 }, { used: 0 }] })
  expect(records).toHaveLength(0)
  const order = { subject: 'acme', cost: 4, idempotency_key: 'order 1' }
  const [first, again] = (await batch([order, order])).json().results
  expect(again).toEqual(first)
  expect([first.limits[0].used, records.length]).toEqual([4, 1])
})

it('a route is the same however it is written, and one whose requests say their cost needs it', async () => {
  const { ask } = await open()
  const peek = { subject: 'acme', peek: true }
  const used = async (route: string) => (await ask({ ...peek, route, cost: 1 })).statusCode
  expect(await used('POST //v1/x/../%73earch')).toBe(200)
  expect(await used('POST /v1%2Fsearch')).toBe(400)
  expect((await ask({ subject: 'acme', route: 'POST //v1/x/../%73earch' })).json().limits[0].used).toBe(5)
  const missing = await ask({ ...peek, route: 'POST /v1/bulk' })
  expect([missing.statusCode, missing.json().type]).toEqual([400, 'urn:weir:problem:cost-unreadable'])
  expect((await ask({ subject: 'acme', route: 'POST /v1/bulk', cost: 1 })).json().allowed).toBe(true)
})

it('a cost above a limit is never admitted, without a time to try again; one beyond the most that a request may cost is 400', async () => {
  const { ask, records } = await open()
  const never = await ask({ subject: 'acme', cost: costMax })
  expect(never.json()).toMatchObject({ allowed: false, reason: 'cost_exceeds_limit', denied_by: 'minute' })
  expect(never.headers).not.toHaveProperty('retry-after')
  expect((await ask({ subject: 'acme', cost: costMax + 1 })).statusCode).toBe(400)
  expect(records).toHaveLength(1)
})

it('a subject that a token names and the policy does not have is on the plan of identity.unknown; without that it is 400', async () => {
  const withPlan = policyText.replace('anonymous: free', 'anonymous: free, unknown: free')
  const { ask, batch, records } = await open(undefined, undefined, withPlan)
  expect((await ask({ subject: 'not-listed', cost: 2 })).json()).toMatchObject({
    allowed: true,
    limits: [{ used: 2 }, {}],
  })
  const checked = await batch([
    { subject: 'not-listed', cost: 3 },
    { subject: 'other', cost: 1 },
  ])
  expect(checked.json().results).toMatchObject([{ limits: [{ used: 5 }, {}] }, { limits: [{ used: 1 }, {}] }])
  expect((await ask({ subject: 'not-listed', cost: 2 })).json()).toMatchObject({ allowed: false, denied_by: 'minute' })
  expect(records).toMatchObject([
    ...['not-listed', 'not-listed', 'other'].map((subject) => ({ subject, plan: 'free', outcome: 'allow' })),
    { subject: 'not-listed', plan: 'free', outcome: 'deny' },
  ])
  for (const subject of ['_unauthenticated', 'ip:192.0.2.1', 'a b ', 'ü', 'x'.repeat(256)]) {
    const wrong = await ask({ subject })
    expect([subject, wrong.statusCode, wrong.json().detail]).toEqual([
      subject,
      400,
      expect.stringContaining('1 to 255'),
    ])
  }
  expect((await ask({ subject: 'other' }, 'acme-key')).statusCode).toBe(403)
  expect(records).toHaveLength(4)
  const without = await (await open()).ask({ subject: 'not-listed' })
  expect([without.statusCode, without.json().detail]).toEqual([400, 'The policy has no subject "not-listed".'])
})

it('of members of a check that are there twice the last counts', async () => {
  const { ask, records } = await open()
  const twice = await ask('{"subject":"nobody","cost":1,"peek":true,"subject":"acme","cost":4,"peek":false}')
  expect(twice.json()).toMatchObject({ allowed: true, limits: [{ used: 4 }, { used: 4 }] })
  const batch = await ask(
    '{"checks":[],"checks":[{"subject":"acme","cost":9,"cost":2}]}',
    'ci-token',
    '/v1/check/batch',
  )
  expect(batch.json().results).toMatchObject([{ allowed: true, limits: [{ used: 6 }, { used: 6 }] }])
  expect(records).toHaveLength(2)
  const own = await ask('{"subject":"acme","subject":"other"}', 'acme-key')
  expect([own.statusCode, (await ask('{"subject":"other","subject":"acme","cost":1}', 'acme-key')).statusCode]).toEqual(
    [403, 200],
  )
})

it.each([
  ['101 checks', { checks: Array.from({ length: 101 }, () => ({})) }, 400],
  ['no checks', { checks: [] }, 400],
  ['a list', [], 400],
  ['__proto__', '{"checks":[{"subject":"acme","__proto__":{"allowed":true}}]}', 400],
  ['deep nesting', `{"checks":[${'['.repeat(50_000)}${']'.repeat(50_000)}]}`, 200],
  ['300 kB', { checks: [{ subject: 'x'.repeat(300_000) }] }, 413],
])('a batch of %s is answered with a problem, and nothing is charged', async (_, payload, status) => {
  const { ask, records } = await open()
  const answer = await ask(payload, 'ci-token', '/v1/check/batch')
  expect([answer.statusCode, records.length]).toEqual([status, 0])
  expect(answer.body).toContain('"detail"')
})

it('other methods, types and paths are refused with what there is', async () => {
  const { api } = await open()
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'] as const) {
    const answer = await api.inject({ method, url: '/v1/check?x=1' })
    expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'POST'])
  }
  const headers = { ...bearer('ci-token'), 'content-type': 'text/plain' }
  expect((await api.inject({ method: 'POST', url: '/v1/check', headers, payload: '{}' })).statusCode).toBe(415)
  expect((await api.inject({ method: 'GET', url: '/constructor' })).json().detail).toContain('/v1/check/batch')
})
