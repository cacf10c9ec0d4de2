import { createHash, randomBytes } from 'node:crypto'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { parseList } from 'structured-headers'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { GatewayProgram } from '../../support/gateways/all-gateways.ts'
import { startCaddy } from '../../support/gateways/caddy.ts'
import { startEnvoy } from '../../support/gateways/envoy.ts'
import { startHaproxy } from '../../support/gateways/haproxy.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { type Answer, type Sent, send } from '../../support/gateways/send.ts'
import type { Gateway, GatewayOptions } from '../../support/gateways/start-gateway.ts'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { callerOf, policyOf } from './policy.ts'

interface Kind {
  readonly start: (options: GatewayOptions) => Promise<Gateway>
  /** What the client gets while Weir is away. */
  readonly statusWhenAway: number
  readonly canServeWhenAway: boolean
}

const kinds: Readonly<Record<GatewayProgram, Kind>> = {
  nginx: { start: startNginx, statusWhenAway: 503, canServeWhenAway: true },
  caddy: { start: startCaddy, statusWhenAway: 502, canServeWhenAway: false },
  haproxy: { start: startHaproxy, statusWhenAway: 503, canServeWhenAway: true },
  envoy: { start: startEnvoy, statusWhenAway: 503, canServeWhenAway: true },
}

/** More than any gateway keeps in one buffer. */
const body = randomBytes(300_000)
/** More than the 1 MB of a body that nginx takes by default. */
const upload = randomBytes(2_000_000)
const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')
const longPath = `/v1/long?q=${'x'.repeat(8_192)}`

const gateways = new Map<string, Gateway>()

const upstream = await forFile(startPlainUpstream())
const stack = await forFile(openIngressStack(policyOf(Object.keys(kinds))))
const weir = await stack.start({ WEIR_COST_EXCEEDS_STATUS: '413' })
for (const [name, { start }] of Object.entries(kinds)) {
  gateways.set(name, await start({ weirApi: weir.api, upstream: upstream.url }))
}
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close()
})

const remaining = ({ headers }: Answer, limit: string) =>
  parseList(String(headers.ratelimit))
    .find((item) => item[0] === limit)?.[1]
    .get('r')

describe.each(Object.keys(kinds))('behind %s', (name) => {
  const ask = (sent: Sent) => send(gateways.get(name)?.url ?? '', sent)
  const as = (caller: Parameters<typeof callerOf>[1]) => ({ 'x-api-key': callerOf(name, caller) })
  const seenSince = (count: number) => upstream.seen.slice(count)
  const canDrop = name === 'nginx' || name === 'haproxy'

  test('GET, POST with a body, HEAD and a URL of 8 kB reach the upstream whole and are charged; RateLimit reaches the client', async () => {
    const before = upstream.seen.length
    const requests: Sent[] = [
      { path: '/v1/x?a=b%20c' },
      { method: 'POST', path: '/v1/x', body },
      { method: 'HEAD', path: '/v1/x' },
      { path: longPath },
    ]
    for (const [at, sent] of requests.entries()) {
      const answer = await ask({ ...sent, headers: as('four') })
      expect([at, answer.status]).toEqual([at, 200])
      expect(answer.body).toBe(sent.method === 'HEAD' ? '' : 'served')
      expect(remaining(answer, 'daily')).toBe(7 - at)
      expect(answer.headers['ratelimit-policy']).toMatch(/^"daily";q=8;w=86400/)
      expect(answer.headers['weir-decision']).toMatch(/^[0-9a-f-]{36}$/)
    }
    expect(seenSince(before).map(({ method, url }) => [method, url])).toEqual(
      requests.map(({ method = 'GET', path }) => [method, path]),
    )
    expect(seenSince(before)[1]?.bodySha256).toBe(sha256(body))
    for (const { headers } of seenSince(before)) {
      expect(headers).toMatchObject({
        'x-weir-subject': callerOf(name, 'four'),
        'x-weir-plan': 'free',
        'x-weir-key-id': `key-of-${callerOf(name, 'four')}`,
      })
      expect(headers).not.toHaveProperty('x-api-key')
    }
  })

  test.each([
    ['a length', {}],
    ['chunks', { 'transfer-encoding': 'chunked' }],
    ['Expect: 100-continue', { expect: '100-continue' }],
  ])('An upload of 2 MB with %s reaches the upstream whole', async (_, headers) => {
    const before = upstream.seen.length
    const sent = { method: 'POST', path: '/v1/x', headers: { ...as('upload'), ...headers }, body: upload }
    const answer = await ask(sent)
    expect([answer.status, answer.body]).toEqual([200, 'served'])
    expect(seenSince(before).map(({ bodySha256 }) => bodySha256)).toEqual([sha256(upload)])
  })

  test('A refusal by fifteen limits with long names and a long challenge, 5 kB of headers, reaches the client', async () => {
    expect((await ask({ headers: as('many') })).status).toBe(200)
    const { status, headers } = await ask({ headers: as('many') })
    expect([status, parseList(String(headers['ratelimit-policy'])).length]).toEqual([429, 15])
    expect(headers['weir-challenge']).toHaveLength(1_020)
  })

  test('a denied request gets 429 with Retry-After, RateLimit and the problem, and does not reach the upstream', async () => {
    await ask({ method: 'POST', path: '/v1/dear', headers: as('more'), body })
    for (let n = 0; n < 3; n += 1) await ask({ path: '/', headers: as('more') })
    const before = upstream.seen.length
    const requests: Sent[] = [
      { path: '/v1/x' },
      { method: 'POST', path: '/v1/dear', body },
      { method: 'HEAD' },
      { path: longPath },
    ]
    for (const [at, sent] of requests.entries()) {
      const answer = await ask({ ...sent, headers: as('more') })
      expect([at, answer.status]).toEqual([at, 429])
      const seconds = Number(answer.headers['retry-after'])
      expect(seconds).toBeGreaterThan(0)
      expect(remaining(answer, 'daily')).toBe(0)
      if (sent.method === 'HEAD') {
        expect(answer.body).toBe('')
        continue
      }
      expect(answer.headers['content-type']).toBe('application/problem+json')
      expect(JSON.parse(answer.body)).toMatchObject({ status: 429, 'violated-policies': ['daily'] })
    }
    expect(seenSince(before)).toEqual([])
  })

  test('a cost that no waiting admits has the status that is configured for it, and no Retry-After', async () => {
    const before = upstream.seen.length
    const answer = await ask({ path: '/v1/never', headers: as('four') })
    expect([answer.status, answer.headers['retry-after']]).toEqual([413, undefined])
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'urn:weir:problem:cost-exceeds-limit', status: 413 })
    expect(seenSince(before)).toEqual([])
  })

  test('a degraded request is marked for the upstream, a dropped one gets no answer where the gateway can do that, a challenge its page', async () => {
    const before = upstream.seen.length
    const forged = { 'x-weir-degraded': 'forged' }
    for (let n = 0; n < 2; n += 1) await ask({ headers: { ...as('soft'), ...forged } })
    expect(seenSince(before).map(({ headers }) => headers['x-weir-degraded'] ?? '')).toEqual(['', 'soft'])
    expect((await ask({ headers: as('cut') })).status).toBe(200)
    const answers: number[] = []
    const dropped = ask({ headers: as('cut') }).then(({ status }) => answers.push(status))
    dropped.catch(() => undefined)
    // HAProxy does not even tell its client that the connection is gone.
    await waitUntil(() => answers.length > 0, { deadlineMs: canDrop ? 2_000 : 20_000 })
    expect(answers).toEqual(canDrop ? [] : [429])
    expect((await ask({ headers: as('human') })).status).toBe(200)
    const challenged = await ask({ headers: as('human') })
    expect([challenged.status, challenged.headers['weir-challenge']]).toEqual([429, 'https://example.com/captcha'])
    expect(seenSince(before)).toHaveLength(4)
  })

  test.each([{}, { 'x-api-key': 'wrong' }, { authorization: 'Bearer wrong' }])(
    '%o is unauthenticated: 401',
    async (headers) => {
      const before = upstream.seen.length
      const answer = await ask({ headers })
      expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Bearer'])
      expect(seenSince(before)).toEqual([])
    },
  )

  test('what a client says in the name of Weir with _ does not reach the upstream, nor does its key', async () => {
    const before = upstream.seen.length
    const forged = { x_weir_subject: 'forged', X_Weir_Plan: 'forged', x_http_method_override: 'forged' }
    const key = callerOf(name, 'keyed')
    const sent = [{ 'x-api-key': key }, { authorization: `Bearer ${key}` }, { authorization: `bearer ${key}` }]
    for (const headers of sent) expect((await ask({ headers: { ...forged, ...headers } })).status).toBe(200)
    // What is for the upstream alone stays.
    expect((await ask({ headers: { authorization: 'Basic eDp5', 'x-api-key': key } })).status).toBe(200)
    expect(JSON.stringify(seenSince(before))).not.toContain('forged')
    expect(seenSince(before).map(({ headers }) => headers.authorization ?? '')).toEqual(['', '', '', 'Basic eDp5'])
  })
})

describe('while Weir is down', () => {
  const asAway = (name: string) => ({ 'x-api-key': callerOf(name, 'away') })
  const startAway = async (start: Kind['start'], whenAway: 'closed' | 'open') => {
    const [port] = await freePorts(1)
    const gateway = await forTest(start({ weirApi: `http://127.0.0.1:${port}`, upstream: upstream.url, whenAway }))
    return gateway
  }

  test.each(Object.entries(kinds))('%s refuses', async (name, { start, statusWhenAway }) => {
    const before = upstream.seen.length
    const gateway = await startAway(start, 'closed')
    const answer = await send(gateway.url, { method: 'POST', path: '/v1/x', headers: asAway(name), body })
    expect([answer.status, upstream.seen.length]).toEqual([statusWhenAway, before])
  })

  const open = Object.entries(kinds).filter(([, { canServeWhenAway }]) => canServeWhenAway)
  test.each(open)('%s serves if told to, and the upstream learns of no caller', async (name, { start }) => {
    const before = upstream.seen.length
    const gateway = await startAway(start, 'open')
    const headers = { ...asAway(name), 'x-weir-subject': 'forged', 'x-weir-plan': 'forged', 'x-weir-key-id': 'forged' }
    const answer = await send(gateway.url, { method: 'POST', path: '/v1/x', headers, body })
    expect([answer.status, answer.body, upstream.seen.length]).toEqual([200, 'served', before + 1])
    const passed = upstream.seen.at(-1)
    expect(passed?.bodySha256).toBe(sha256(body))
    for (const header of ['x-weir-subject', 'x-weir-plan', 'x-weir-key-id', 'x-api-key']) {
      expect(passed?.headers).not.toHaveProperty(header)
    }
  })

  test.each(open)(
    '%s, told to serve, still serves nothing uncounted while Weir is there, however much is sent',
    async (name, { start }) => {
      const gateway = await forTest(start({ weirApi: weir.api, upstream: upstream.url, whenAway: 'open' }))
      const headers = { 'x-api-key': callerOf(name, 'wide') }
      // HAProxy marks Weir as up only once it has checked.
      await vi.waitFor(
        async () => expect((await send(gateway.url, { headers })).headers).toHaveProperty('weir-decision'),
        10_000,
      )
      const near = (size: number) => Array.from({ length: 40 }, (_, at) => size - 1_600 + at * 50)
      for (const size of [
        ...near(16_384),
        ...near(28_200),
        ...near(32_768),
        ...near(61_440),
        66_000,
        82_000,
        130_000,
      ]) {
        const before = upstream.seen.length
        const answer = await send(gateway.url, { headers: { ...headers, 'x-large': 'x'.repeat(size) } })
        if (upstream.seen.length > before)
          expect([size, answer.headers['weir-decision']]).toEqual([size, expect.any(String)])
        else expect([size, answer.status >= 400]).toEqual([size, true])
      }
    },
  )
})
