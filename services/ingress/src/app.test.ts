import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openMemoryIngress, sha256 } from './testing/memory-ingress.ts'

const acme = { 'x-api-key': 'acme-key' }
const admin = { authorization: 'Bearer root' }

const policyText = (upstreamPort: number) => `
version: 1
plans: { free: { limits: [minute] }, other: { limits: [] }, watched: { limits: [trial, region] } }
limits:
  minute: { algorithm: fixed_window, size: 6, window: 1m }
  per-ip: { algorithm: fixed_window, size: 50, window: 1m, by: [ip], applies: all }
  trial: { algorithm: sliding_log, size: 1, window: 1m, mode: shadow }
  region: { algorithm: sliding_log, size: 2, window: 1m, block: 2m, by: [subject, header:x-region, attribute:region] }
routes:
  - { match: "POST /v1/search", cost: 5, upstream: here }
upstreams:
  here: { url: "http://127.0.0.1:${upstreamPort}", hosts: [api.test] }
subjects:
  acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}", id: k1 }] }
  globex: { plan: other, keys: [{ sha256: "${sha256('old-key')}", expires: "2026-11-21T12:00:10Z" }] }
  hooli: { plan: watched, keys: [{ sha256: "${sha256('hooli-key')}", id: k3 }] }
`

let upstream: Server
let apps: Awaited<ReturnType<typeof openMemoryIngress>>
let decisions: MemoryDecisionLog
let upstreamSaw: { method: string | undefined; url: string | undefined; headers: object; body: string }[]
let upstreamStatus: number

beforeEach(async () => {
  upstreamSaw = []
  upstreamStatus = 201
  upstream = createServer(async (request, response) => {
    const { method, url, headers } = request
    upstreamSaw.push({ method, url, headers, body: await text(request) })
    response.writeHead(upstreamStatus, { 'retry-after': '1' }).end('made')
  })
  await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done))
  apps = await openMemoryIngress(policyText((upstream.address() as AddressInfo).port))
  decisions = apps.decisions
})
afterEach(async () => {
  await apps.proxy.close()
  await apps.api.close()
  upstream.closeAllConnections()
  await new Promise((done) => upstream.close(done))
})

const tooMany = Array.from({ length: 33 }, (_, at) => `v${at}`)

const get = (headers: Record<string, string> = acme, url = '/hello?a=b%20c') =>
  apps.proxy.inject({ method: 'GET', url, headers: { host: 'api.test', ...headers } })
const check = (payload: object, headers: Record<string, string> = admin) =>
  apps.api.inject({ method: 'POST', url: '/v1/check', headers, payload })

describe('the reverse proxy', () => {
  it('counts by headers, says how long a block lasts, and never mentions a shadow limit', async () => {
    const from = (region: string) => get({ 'x-api-key': 'hooli-key', 'x-region': region })
    const answers = [await from('eu'), await from('eu'), await from('us'), await from('eu'), await from('eu')]
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([201, 201, 201, 429, 429])
    const [first, , , refused, blocked] = answers
    expect(first?.headers['ratelimit-policy']).toBe('"region";q=2;w=60, "per-ip";q=50;w=60')
    expect(first?.headers.ratelimit).toBe('"region";r=1;t=60, "per-ip";r=49;t=50')
    expect([refused?.headers['retry-after'], blocked?.headers['retry-after']]).toEqual(['120', '120'])
    expect(blocked?.json()).toMatchObject({ status: 429, 'violated-policies': ['region'] })
    expect(blocked?.json().detail).toContain('the caller is blocked')
    expect(decisions.records.map(({ mode, reason }) => [mode, reason])).toEqual([
      ['enforce', 'ok'],
      ['shadow', 'limit'],
      ['shadow', 'limit'],
      ['enforce', 'limit'],
      ['enforce', 'blocked'],
    ])
  })

  it('records every decision, allowed or denied, with the route and never the path', async () => {
    await apps.proxy.inject({ method: 'POST', url: '/v1/search?secret=1', headers: { host: 'api.test', ...acme } })
    await apps.proxy.inject({ method: 'POST', url: '/v1/search', headers: { host: 'api.test', ...acme } })
    await get({})
    expect(decisions.records).toMatchObject([
      { key: 'acme', subject: 'acme', key_id: 'k1', plan: 'free', route: 'POST /v1/search', cost: 5, outcome: 'allow' },
      { key: 'acme', outcome: 'deny', reason: 'limit', denied_by: 'minute', charged: 'no' },
      { subject: '_unauthenticated', key_id: '', outcome: 'deny', reason: 'unauthorized', route: '*' },
    ])
    expect(JSON.stringify(decisions.records)).not.toContain('secret')
    expect(decisions.records[2]?.key).not.toContain('127.0.0.1')
  })

  it('asks the upstream once, also when it says 503 and when to come back', async () => {
    upstreamStatus = 503
    const answer = await get()
    expect([answer.statusCode, answer.headers['retry-after'], upstreamSaw.length]).toEqual([503, '1', 1])
  })

  it('admits nothing that cannot be recorded', async () => {
    decisions.isFull = true
    const answer = await get()
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5'])
    expect(answer.headers['weir-decision']).toBeUndefined()
    expect(upstreamSaw).toHaveLength(0)
  })

  it('where a full journal admits, passes on what cannot be recorded without an id, and records no outcome of it', async () => {
    const outcomes: string[] = []
    const { proxy } = await openMemoryIngress(policyText((upstream.address() as AddressInfo).port), {
      log: decisions,
      onJournalFull: 'admit',
      outcomes: { append: (_, line) => outcomes.push(line) > 0 },
    })
    onTestFinished(() => proxy.close())
    const ask = () => proxy.inject({ method: 'GET', url: '/hello', headers: { host: 'api.test', ...acme } })
    const recorded = await ask()
    decisions.isFull = true
    const answer = await ask()
    expect([answer.statusCode, answer.headers['weir-decision']]).toEqual([201, undefined])
    expect(upstreamSaw.map(({ headers }) => headers)).toMatchObject([
      { 'weir-decision': recorded.headers['weir-decision'] },
      expect.not.objectContaining({ 'weir-decision': expect.anything() }),
    ])
    expect([outcomes.length, decisions.missed]).toEqual([1, 1])
  })
})

describe('POST /v1/check', () => {
  it('answers both outcomes with 200 in the words of the contract', async () => {
    const first = await check({ subject: 'acme', cost: 6 })
    expect([first.statusCode, first.json()]).toEqual([
      200,
      {
        id: first.headers['weir-decision'],
        allowed: true,
        reason: 'ok',
        denied_by: '',
        retry_after_ms: 0,
        limits: [{ name: 'minute', size: 6, used: 6, remaining: 0, reset_ms: 50_000 }],
      },
    ])
    const second = await check({ subject: 'acme' })
    expect(second.json()).toMatchObject({
      allowed: false,
      reason: 'limit',
      denied_by: 'minute',
      retry_after_ms: 50_000,
    })
    expect(second.statusCode).toBe(200)
  })

  it('takes the cost of the route, and limits by address only when told an address', async () => {
    const answer = await check({ subject: 'acme', route: 'POST /v1/search', ip: '2001:db8:1:2:3:4:5:6' })
    const limits = answer.json().limits.map(({ name, used }: { name: string; used: number }) => [name, used])
    expect(limits).toEqual([
      ['minute', 5],
      ['per-ip', 5],
    ])
  })

  it('counts by attributes, and leaves shadow limits out of its answer', async () => {
    const ask = async (region: string | number) => (await check({ subject: 'hooli', attributes: { region } })).json()
    const answers = [await ask('eu'), await ask(7), await ask('eu'), await ask('eu')]
    expect(answers.map(({ denied_by }) => denied_by)).toEqual(['', '', '', 'region'])
    expect(answers[2].limits).toEqual([{ name: 'region', size: 2, used: 2, remaining: 0, reset_ms: 60_000 }])
  })

  it.each([
    ['no credential', {}, {}, 401],
    ['a wrong token', {}, { authorization: 'Bearer nope' }, 401],
    ['an expired key', {}, { 'x-api-key': 'old-key' }, 401],
    ['a subject that the policy does not have', { subject: 'initech' }, admin, 400],
    ['nobody at all', {}, admin, 400],
    ['subject and key at once', { subject: 'acme', key: 'acme-key' }, admin, 400],
    ['a negative cost', { subject: 'acme', cost: -1 }, admin, 400],
    ['a cost that is text', { subject: 'acme', cost: '1' }, admin, 400],
    ['a broken cost', { subject: 'acme', cost: 0.5 }, admin, 400],
    ['an unknown field', { subject: 'acme', costs: 1 }, admin, 400],
    ['an address that is none', { subject: 'acme', ip: 'here' }, admin, 400],
    ['an empty idempotency key', { subject: 'acme', idempotency_key: '' }, admin, 400],
    ['a long idempotency key', { subject: 'acme', idempotency_key: 'x'.repeat(257) }, admin, 400],
    ['attributes that are no map', { subject: 'acme', attributes: ['x'] }, admin, 400],
    ['an attribute that is a map', { subject: 'acme', attributes: { a: {} } }, admin, 400],
    ['a long attribute', { subject: 'acme', attributes: { a: 'x'.repeat(257) } }, admin, 400],
    ['33 attributes', { subject: 'acme', attributes: Object.fromEntries(tooMany.entries()) }, admin, 400],
  ])('refuses %s with a problem that says so', async (_, payload, headers, status) => {
    const answer = await check(payload, headers as Record<string, string>)
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([status, 'application/problem+json'])
    expect(answer.json().detail.length).toBeGreaterThan(10)
  })

  it('waits half a minute for the whole of a question, and no longer', () => {
    expect(apps.api.server).toMatchObject({ requestTimeout: 30_000, headersTimeout: 30_000 })
  })
})
