import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { createRlsClient, type RlsClient } from '../../support/envoy-ratelimit/rls-client.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { readMetric } from '../../support/read-metric.ts'

const day = { algorithm: 'fixed_window', window: '7d' }
const scopes = ['check', 'usage', 'billing', 'read', 'write', 'keys', 'limits', 'admin']
const policyOf = (upstream: string) => ({
  version: 1,
  plans: { free: { limits: ['daily'] } },
  limits: { daily: { ...day, size: 1_000_000 }, outbound: { ...day, size: 100, onExceed: 'delay' } },
  upstreams: { here: { url: upstream, hosts: ['*'] } },
  subjects: { bob: { plan: 'free', keys: [{ sha256: sha256('key-of-bob') }] } },
  tokens: Object.fromEntries(scopes.map((scope) => [scope, { sha256: sha256(`${scope}-token`), scopes: [scope] }])),
})

const upstream = await forFile(startPlainUpstream())
const stack = await forFile(startIngressStack(policyOf(upstream.url)))
const grpc = await createRlsClient(stack.ingress.grpc)
afterAll(() => void grpc.close())

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
async function post(path: string, credential: string, value: object) {
  const { status, body } = await send(stack.ingress.api, {
    method: 'POST',
    path,
    body: Buffer.from(JSON.stringify(value)),
    headers: { 'content-type': 'application/json', ...(credential === '' ? {} : bearer(credential)) },
  })
  return { status, body: JSON.parse(body) }
}
describe('a token', () => {
  countAttempts(
    'Tokens × scopes × routes of the api listener',
    'a 401 or 403 without the scope `check`, at every route',
  )
  const routes = ['/v1/check', '/v1/check/batch', '/v1/settle', '/v1/leases', '/v1/pause']
  const bodies: Readonly<Record<string, object>> = {
    '/v1/check': { subject: 'bob' },
    '/v1/check/batch': { checks: [{ subject: 'bob' }] },
    '/v1/settle': { id: '019b7b5e-0000-7000-8000-000000000000', cost: 1, subject: 'bob' },
    '/v1/pause': { limit: 'outbound', for: '1s', subject: 'bob' },
  }
  const mayNot = scopes.filter((scope) => scope !== 'check' && scope !== 'admin')

  test.each(routes.flatMap((route) => mayNot.map((scope) => [route, scope] as const)))(
    '%s with the scope %s alone is 403',
    async (route, scope) => {
      expect((await post(route, `${scope}-token`, bodies[route] ?? {})).status).toBe(403)
    },
  )
  test.each(
    routes.flatMap((route) => ['', 'weir_token_0000', sha256('check-token'), 'check'].map((token) => [route, token])),
  )('%s with the token "%s" is 401', async (route = '', token = '') => {
    expect((await post(route, token, bodies[route] ?? {})).status).toBe(401)
  })
  test.each(scopes)('with the scope %s is no key: not at the proxy, and not for a gateway', async (scope) => {
    const before = upstream.seen.length
    const headers = bearer(`${scope}-token`)
    expect((await send(stack.ingress.proxy, { path: '/v1/x', headers })).status).toBe(401)
    expect((await send(stack.ingress.api, { path: '/v1/authorize/v1/x', headers })).status).toBe(401)
    expect(upstream.seen).toHaveLength(before)
  })
  test.each(mayNot)('with the scope %s does not ask over gRPC', async (scope) => {
    const asked = { domain: 'any', descriptors: [{ entries: [{ key: 'subject', value: 'bob' }] }] }
    await expect(grpc.shouldRateLimit(asked, bearer(`${scope}-token`))).rejects.toMatchObject({ code: 7 })
  })
})

type Question = Parameters<RlsClient['shouldRateLimit']>[0]

describe('a call over gRPC', () => {
  countAttempts('gRPC: odd and malformed questions', 'a decision or a clear error; the process answers the next call')
  const entry = (key: string, value: string) => ({ entries: [{ key, value }] })
  const any = (...descriptors: object[]) => ({ domain: 'any', descriptors })
  const request = (method: string, path: string) => {
    const entries = Object.entries({ method, path }).map(([key, value]) => ({ key, value }))
    return any({ entries })
  }
  const alive = async () => (await grpc.shouldRateLimit(any(entry('subject', 'bob')) as Question)).overall_code
  /** By the name of each value. */
  const each = <T>(values: readonly T[], nameOf: (value: T) => string, ask: (value: T) => object) =>
    Object.fromEntries(values.map((value) => [nameOf(value), ask(value)]))
  const brief = (text: string) => JSON.stringify(text.slice(0, 30))

  const odd: Readonly<Record<string, object>> = {
    'no domain': { domain: '', descriptors: [entry('a', 'b')] },
    'no descriptors': any(),
    'no entries': any({ entries: [] }),
    '33 descriptors': any(...Array(33).fill(entry('a', 'b'))),
    '17 entries': any({ entries: Array(17).fill({ key: 'a', value: 'b' }) }),
    'a name of 129 characters': any(entry('a'.repeat(129), 'b')),
    'a name with a NUL': any(entry('a\0b', 'b')),
    'a name with a line break': any(entry('a\r\nb', 'b')),
    'a domain with a line break': { domain: 'any\r\n', descriptors: [entry('a', 'b')] },
    'a domain of 10,000 characters': { domain: 'a'.repeat(10_000), descriptors: [entry('a', 'b')] },
    'a value of 200 kB': any(entry('a', 'b'.repeat(200_000))),
    'a value of 400 kB': any(entry('a', 'b'.repeat(400_000))),
    ...each(
      ['__proto__', 'constructor', 'toString', 'hasOwnProperty'],
      (name) => `an entry ${name}`,
      (name) => any(entry(name, name)),
    ),
    ...each(
      ['__proto__', 'constructor', 'toString', 'hasOwnProperty'],
      (name) => `the subject ${name}`,
      (name) => any(entry('subject', name)),
    ),
    ...each(
      [-1, 2 ** 31, 2 ** 32 - 1],
      (hits) => `${hits} hits`,
      (hits) => ({ ...any(entry('a', 'b')), hits_addend: hits }),
    ),
    ...each(
      [0, 2 ** 53, 1.8e19],
      (hits) => `${hits} hits of a descriptor`,
      (hits) => any({ ...entry('a', 'b'), hits_addend: { value: hits } }),
    ),
    ...each(
      [
        { requests_per_unit: 0, unit: 'SECOND' },
        { requests_per_unit: 2 ** 32 - 1, unit: 'YEAR' },
        { requests_per_unit: 1, unit: 'UNKNOWN' },
        { requests_per_unit: 1, unit: 99 },
      ],
      (limit) => `the override ${JSON.stringify(limit)}`,
      (limit) => any({ ...entry('a', 'b'), limit }),
    ),
    ...each(
      ['/v1%2fllm', '/a/../v1/llm', '/\0', '\\v1', 'x'.repeat(9_000), '/%zz', 'http://a.test/v1', ''],
      (path) => `the path ${brief(path)}`,
      (path) => request('POST', path),
    ),
    ...each(
      ['', 'get', 'FOO', 'A'.repeat(100), 'GET /x', "' OR 1=1", 'POST\r\nX: y'],
      (method) => `the method ${brief(method)}`,
      (method) => request(method, '/v1/x'),
    ),
    ...each(
      ['1.2.3', '::ffff:127.0.0.1', '0x7f.1', 'a'.repeat(500), '127.0.0.1, 9.9.9.9'],
      (address) => `the address ${address.slice(0, 30)}`,
      (address) => any(entry('remote_address', address)),
    ),
    'a wrong key': any(entry('key', 'wrong')),
    'a key of 9,000 characters': any(entry('key', 'k'.repeat(9_000))),
    'a key of somebody and a subject': any(entry('key', 'wrong'), entry('subject', 'bob')),
  }
  test.each(Object.keys(odd))('%s', async (name) => {
    const outcome = await grpc.shouldRateLimit(odd[name] as Question).then(
      ({ overall_code }) => overall_code,
      ({ code }: { code: number }) => code,
    )
    // 3: INVALID_ARGUMENT, 8: RESOURCE_EXHAUSTED, which is a message beyond the size that the listener takes.
    expect(['OK', 'OVER_LIMIT', 3, 8]).toContain(outcome)
    expect(await alive()).toBe('OK')
  })

  const raw: Readonly<Record<string, string>> = {
    'HTTP/1.1': 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'a preface alone': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a preface and junk': `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'\xff'.repeat(1_000)}`,
    'a frame of 16 MB': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x01',
    'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    zeros: '\0'.repeat(10_000),
  }
  test.each(Object.keys(raw))('%s on its connection', async (name) => {
    const [host = '', port = ''] = stack.ingress.grpc.split(':')
    const socket = connect(Number(port), host)
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).resume()
    socket.write(raw[name] ?? '', 'latin1')
    expect(await alive()).toBe('OK')
  })
})

describe('a request that is never finished', () => {
  countAttempts('Slow heads and bodies', 'other requests are served meanwhile')
  const heads: Readonly<Record<string, string>> = {
    'no byte': '',
    'half a request line': 'GET /v1',
    'half a head': 'POST /v1/check HTTP/1.1\r\nHost: a\r\nX-A: ',
    'a body that does not come':
      'POST /v1/check HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer check-token\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    'a chunk that does not come':
      'POST /v1/check HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer check-token\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{',
  }
  const doors = { proxy: () => stack.ingress.proxy, api: () => stack.ingress.api, ops: () => stack.ingress.ops }
  test.each(Object.keys(heads).flatMap((what) => Object.keys(doors).map((door) => [what, door] as const)))(
    '%s on 300 connections of the %s listener',
    async (what, door) => {
      const { hostname, port } = new URL(doors[door as keyof typeof doors]())
      for (let n = 0; n < 300; n += 1) {
        const socket = connect(Number(port), hostname)
        onTestFinished(() => void socket.destroy())
        socket
          .on('error', () => undefined)
          .resume()
          .write(heads[what] ?? '')
      }
      const startedMs = performance.now()
      const answer = await send(stack.ingress.proxy, { path: '/v1/x', headers: bearer('key-of-bob') })
      expect(answer.status).toBe(200)
      expect((await post('/v1/check', 'check-token', { subject: 'bob', peek: true })).status).toBe(200)
      expect(await readMetric(stack.ingress.ops, 'weir_decisions_total')).toBeGreaterThan(0)
      expect(performance.now() - startedMs).toBeLessThan(5_000)
    },
  )
})

describe('what all of that has left behind', () => {
  countAttempts('Secrets in the log and command line of the ingress', 'no key or token is in them')
  test.each(['key-of-bob', ...scopes.map((scope) => `${scope}-token`)])('does not have %s', async (secret) => {
    const { pid, api } = stack.ingress
    const log = await readFile(join(tmpdir(), `weir-test-ingress-${process.pid}-${new URL(api).port}.log`), 'utf8')
    expect(log).not.toContain(secret)
    for (const file of ['cmdline', 'environ'])
      expect(await readFile(`/proc/${pid}/${file}`, 'utf8')).not.toContain(secret)
  })
})
