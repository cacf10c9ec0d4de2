import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { MemoryLimitStore } from '@weir/redis/testing/memory-limit-store.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { openMemoryIngress, sha256 } from './testing/memory-ingress.ts'

const page = 'https://example.com/captcha?a=1'
const names = ['denied', 'dropped', 'delayed', 'degraded', 'challenged', 'blocked', 'slow', 'open'] as const
type Name = (typeof names)[number]

const policyText = (port: number) => `
version: 1
plans:
  open: { limits: [] }
  keyed: { limits: [by-key] }
${names
  .slice(0, -1)
  .map((name) => `  ${name}: { limits: [${name}] }`)
  .join('\n')}
limits:
  denied: { algorithm: fixed_window, size: 1, window: 1d }
  dropped: { algorithm: fixed_window, size: 1, window: 1d, onExceed: drop }
  delayed: { algorithm: sliding_log, size: 1, window: 200ms, onExceed: { delay: 20s } }
  slow: { algorithm: sliding_log, size: 1, window: 1h, onExceed: { delay: 20s } }
  degraded: { algorithm: fixed_window, size: 1, window: 1d, onExceed: degrade }
  challenged: { algorithm: fixed_window, size: 1, window: 1d, onExceed: { challenge: "${page}" } }
  blocked: { algorithm: fixed_window, size: 1, window: 1d, block: 10m, onExceed: block }
  by-key: { algorithm: fixed_window, size: 1, window: 1d, by: [key], onExceed: delay }
  many-scopes: { algorithm: fixed_window, size: 1, window: 1d, by: [subject, route], onExceed: delay }
upstreams: { here: { url: "http://127.0.0.1:${port}" } }
subjects:
  keyed: { plan: keyed }
${names.map((name) => `  ${name}: { plan: ${name}, keys: [{ sha256: "${sha256(name)}" }] }`).join('\n')}
`

async function openIngress() {
  const seen: IncomingMessage['headers'][] = []
  const upstream = createServer((incoming, response) => {
    seen.push(incoming.headers)
    response.writeHead(200, { 'weir-challenge': 'https://evil.test/' }).end('made')
  })
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  const store = new MemoryLimitStore({ clock: systemClock, periodBoundaries: createBoundaryCache() })
  const upstreamPort = (upstream.address() as AddressInfo).port
  const apps = await openMemoryIngress(policyText(upstreamPort), { store, pauses: store, clock: systemClock })
  const { policy } = apps.ports
  await apps.proxy.listen({ host: '127.0.0.1', port: 0 })
  const { port } = apps.proxy.server.address() as AddressInfo
  onTestFinished(async () => {
    apps.proxy.server.closeAllConnections()
    await Promise.all([apps.proxy.close(), apps.api.close()])
    upstream.closeAllConnections()
    upstream.close()
  })
  /** Through the proxy, on a connection of its own; undefined when it was closed without an answer. */
  const ask = async (name: Name, headers: Record<string, string> = {}, method = 'GET') => {
    const sent = request({ port, host: '127.0.0.1', method, agent: false, headers: { 'x-api-key': name, ...headers } })
    sent.end()
    const answer = await Promise.race([
      once(sent, 'response').then(([got]: IncomingMessage[]) => got),
      once(sent, 'close').then(() => undefined),
    ]).catch(() => undefined)
    if (answer === undefined) return undefined
    return { status: answer.statusCode, headers: answer.headers, body: await text(answer) }
  }
  const post = (url: string, payload: object, key = 'root') =>
    apps.api.inject({ method: 'POST', url, headers: { authorization: `Bearer ${key}` }, payload })
  const authorize = (name: Name) => apps.api.inject({ url: '/v1/authorize/x', headers: { 'x-api-key': name } })
  return { ...apps, port, seen, ask, post, authorize, store, policy, upstreamPort }
}

test('a request beyond a limit that drops is recorded, and its connection closed without a byte', async () => {
  const { ask, records, decisionService } = await openIngress()
  expect((await ask('dropped'))?.status).toBe(200)
  expect(await ask('dropped')).toBeUndefined()
  expect(records.at(-1)).toMatchObject({ outcome: 'deny', reason: 'limit', denied_by: 'dropped', mode: 'enforce' })
  expect(decisionService.exceeded).toMatchObject({ drop: 1, deny: 0 })
})

test('dropped in the middle of a pipeline, the answers before it come whole, and nothing after them', async () => {
  const { port, records } = await openIngress()
  const socket = connect(port, '127.0.0.1')
  const said = text(socket)
  const line = (key: string) => `GET / HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`
  socket.write(['open', 'dropped', 'dropped', 'open'].map(line).join(''))
  const answers = (await said).split('HTTP/1.1 ').slice(1)
  expect(answers.map((answer) => answer.slice(0, 3))).toEqual(['200', '200'])
  expect(answers[1]).toMatch(/made\r\n0\r\n\r\n$|made$/)
  expect(records.filter(({ outcome }) => outcome === 'deny')).toMatchObject([{ denied_by: 'dropped' }])
})

test('an upgrade beyond a limit that drops is closed without an answer too', async () => {
  const { port, ask } = await openIngress()
  await ask('dropped')
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-api-key: dropped\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  expect(await text(socket)).toBe('')
})

test('a degraded request goes through, and the upstream learns by which limit; a client cannot forge that', async () => {
  const { ask, seen, records, authorize } = await openIngress()
  const forged = { 'weir-degraded': 'forged', weir_degraded: 'forged' }
  await ask('degraded', forged)
  const second = await ask('degraded', forged)
  expect(seen.map((headers) => headers['weir-degraded'])).toEqual([undefined, 'degraded'])
  expect(seen.some((headers) => headers.weir_degraded !== undefined)).toBe(false)
  expect(second?.status).toBe(200)
  expect(second?.headers.ratelimit).toMatch(/^"degraded";r=0;t=\d+$/)
  expect(second?.headers['weir-challenge']).toBeUndefined()
  expect(records.at(-1)).toMatchObject({
    outcome: 'allow',
    reason: 'limit',
    mode: 'enforce',
    denied_by: 'degraded',
    charged: 'yes',
  })
  expect((await authorize('degraded')).headers['x-weir-degraded']).toBe('degraded')
  expect((await authorize('open')).headers['x-weir-degraded']).toBe('')
})

test('a challenged request is told the page, and a browser that asks for a page is sent there', async () => {
  const { ask, records, authorize } = await openIngress()
  await ask('challenged')
  const plain = await ask('challenged', { accept: '*/*' })
  expect(plain).toMatchObject({ status: 429, headers: { 'weir-challenge': page } })
  expect(JSON.parse(plain?.body ?? '')).toMatchObject({ challenge: page, 'violated-policies': ['challenged'] })
  const accept = 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8'
  for (const method of ['GET', 'HEAD']) {
    const browser = await ask('challenged', { accept }, method)
    expect(browser).toMatchObject({ status: 303, body: '', headers: { location: page, 'cache-control': 'no-store' } })
    expect(browser?.headers['weir-challenge']).toBe(page)
    expect(browser?.headers['retry-after']).toBeUndefined()
  }
  for (const [accepts, method] of [
    [accept, 'POST'],
    ['text/html;q=0, */*', 'GET'],
    ['text/htmlx', 'GET'],
  ] as const) {
    expect((await ask('challenged', { accept: accepts }, method))?.status).toBe(429)
  }
  const gateway = await authorize('challenged')
  expect([gateway.statusCode, gateway.headers['weir-challenge'], gateway.json().challenge]).toEqual([429, page, page])
  expect(records.filter(({ denied_by }) => denied_by === 'challenged')).toHaveLength(7)
})

test('a check says what the policy wants done, and nothing of it where that is a plain refusal', async () => {
  const { post } = await openIngress()
  const check = async (subject: Name) => {
    await post('/v1/check', { subject })
    const { limits: _, ...told } = (await post('/v1/check', { subject })).json()
    return told
  }
  expect(await check('denied')).not.toHaveProperty('on_exceed')
  expect(await check('open')).not.toHaveProperty('on_exceed')
  expect(await check('dropped')).toMatchObject({ allowed: false, reason: 'limit', on_exceed: 'drop' })
  expect(await check('degraded')).toMatchObject({
    allowed: true,
    reason: 'limit',
    denied_by: 'degraded',
    on_exceed: 'degrade',
    retry_after_ms: 0,
  })
  expect(await check('challenged')).toMatchObject({ allowed: false, on_exceed: 'challenge', challenge: page })
  expect(await check('blocked')).toMatchObject({ allowed: false, reason: 'limit', on_exceed: 'block' })
  expect(await check('slow')).toMatchObject({ allowed: false, reason: 'limit', on_exceed: 'delay' })
})

test('gateways are told to drop, and never wait; a cost that never fits is a plain refusal everywhere', async () => {
  const { authorize, post, decisionService } = await openIngress()
  for (const name of ['dropped', 'delayed', 'slow'] as const) await authorize(name)
  const dropped = await authorize('dropped')
  expect([dropped.statusCode, dropped.headers['weir-on-exceed']]).toEqual([429, 'drop'])
  const slow = await authorize('slow')
  expect([slow.statusCode, slow.headers['weir-on-exceed'], decisionService.exceeded.delay]).toEqual([429, undefined, 0])
  const large = await post('/v1/check', { subject: 'dropped', cost: 2, wait: '10s' })
  expect(large.json()).toMatchObject({ reason: 'cost_exceeds_limit', denied_by: 'dropped' })
  expect(large.json()).not.toHaveProperty('on_exceed')
})

test('through the proxy a request waits for room in a limit that delays, and is answered when it has it', async () => {
  const { ask, decisionService, records } = await openIngress()
  const answers = await Promise.all(Array.from({ length: 5 }, () => ask('delayed')))
  expect(answers.map((answer) => answer?.status)).toEqual([200, 200, 200, 200, 200])
  expect([decisionService.exceeded.delay, decisionService.delays.waiting, records.length]).toEqual([4, 0, 5])
})

test('a check waits only if it says so, at most a minute, and not in a batch', async () => {
  const { post } = await openIngress()
  await post('/v1/check', { subject: 'delayed' })
  expect((await post('/v1/check', { subject: 'delayed' })).json().allowed).toBe(false)
  expect((await post('/v1/check', { subject: 'delayed', wait: '10s' })).json().allowed).toBe(true)
  for (const wait of ['61s', '2m', '0s', 'x']) {
    expect((await post('/v1/check', { subject: 'delayed', wait })).statusCode).toBe(400)
  }
  const batch = await post('/v1/check/batch', { checks: [{ subject: 'open', wait: '1s' }, { subject: 'open' }] })
  expect(batch.json().results).toMatchObject([{ problem: { status: 400 } }, { allowed: true }])
})

test('a limit that delays can be paused: it refuses until then, longer but never shorter, for that subject alone', async () => {
  const { post, ask } = await openIngress()
  const pause = { subject: 'slow', limit: 'slow', for: '30s' }
  expect((await post('/v1/pause', pause)).json()).toEqual({ limit: 'slow', retry_after_ms: 30_000 })
  const again = await post('/v1/pause', { ...pause, for: '1s' })
  expect(again.json().retry_after_ms).toBeGreaterThan(28_000)
  expect(again.headers['cache-control']).toBe('no-store')
  expect((await post('/v1/check', { subject: 'slow' })).json()).toMatchObject({ reason: 'blocked', denied_by: 'slow' })
  const own = await post('/v1/pause', { limit: 'slow', for: '60s' }, 'slow')
  expect(own.json()).toEqual({ limit: 'slow', retry_after_ms: 60_000 })
  expect((await post('/v1/pause', { limit: 'slow', for: '61m' }, 'slow')).json().detail).toContain('at most 1h')
  expect((await ask('slow'))?.status).toBe(429)
  expect((await ask('delayed'))?.status).toBe(200)
})

test.each([
  [{ subject: 'slow', limit: 'slo', for: '30s' }, 400, 'The policy has no limit "slo"; did you mean slow?.'],
  [{ subject: 'denied', limit: 'denied', for: '30s' }, 400, 'The limit denied has no `onExceed: delay`'],
  [{ subject: 'slow', limit: 'many-scopes', for: '30s' }, 400, 'only limits that count by subject alone'],
  [{ subject: 'slow', limit: 'slow', for: '32d' }, 400, 'at most 31d'],
  [{ subject: 'slow', limit: 'delayed', for: '30s' }, 400, 'The limit delayed does not apply to slow.'],
  [{ subject: 'keyed', limit: 'by-key', for: '30s' }, 400, 'counts per key: send key'],
  [{ subject: 'slow', limit: 'slow' }, 400, "must have required property 'for'"],
  [{ subject: 'nobody', limit: 'slow', for: '1s' }, 400, 'The policy has no subject "nobody"'],
  [{ limit: 'slow', for: '1s' }, 400, 'Give subject or key.'],
])('the pause %j is answered with %i', async (body, status, detail) => {
  const { post } = await openIngress()
  const answer = await post('/v1/pause', body)
  expect([answer.statusCode, answer.json().detail]).toEqual([status, expect.stringContaining(detail)])
})

test('a subject pauses no other subject, and an unauthenticated caller none at all', async () => {
  const { post, store } = await openIngress()
  expect((await post('/v1/pause', { subject: 'slow', limit: 'slow', for: '1s' }, 'open')).statusCode).toBe(403)
  expect((await post('/v1/pause', { subject: 'slow', limit: 'slow', for: '1s' }, 'nobodys')).statusCode).toBe(401)
  Object.assign(store, { pause: async () => undefined })
  const gone = await post('/v1/pause', { subject: 'slow', limit: 'slow', for: '1s' })
  expect([gone.statusCode, gone.headers['retry-after'], gone.json().type]).toEqual([
    503,
    '1',
    'urn:weir:problem:limits-unavailable',
  ])
})

test.each(['proxy', 'api'] as const)(
  'a stop serves who waits at the %s, and is over although the client would keep its connection',
  async (door) => {
    const { proxy, api, close, decisionService } = await openIngress()
    await api.listen({ host: '127.0.0.1', port: 0 })
    const { port } = (door === 'proxy' ? proxy : api).server.address() as AddressInfo
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const send = async () => {
      const headers = { authorization: 'Bearer delayed', 'content-type': 'application/json' }
      const where = door === 'proxy' ? { method: 'GET' } : { method: 'POST', path: '/v1/check' }
      const sent = request({ port, host: '127.0.0.1', agent, headers, ...where })
      sent.end(door === 'proxy' ? undefined : JSON.stringify({ wait: '20s' }))
      const [answer]: IncomingMessage[] = await once(sent, 'response')
      return { status: answer?.statusCode, body: answer === undefined ? '' : await text(answer) }
    }
    await send()
    const waiting = send()
    await waitUntil(() => decisionService.delays.waiting === 1, { deadlineMs: 5_000 })
    const closed = close()
    const refused = await waitUntil(() => isRefused(port), { deadlineMs: 5_000 })
    expect([refused, (await waiting).status]).toEqual([true, 200])
    await closed
  },
)

/** Whether nothing listens there any more. */
const isRefused = (port: number) =>
  new Promise<boolean>((done) => {
    const socket = connect(port, '127.0.0.1')
    socket
      .once('error', () => done(true))
      .once('connect', () => {
        socket.destroy()
        done(false)
      })
  })

test('a check that waits with a key of its own is refused once the key is revoked, and its subject stays', async () => {
  const { post, policy, upstreamPort, decisionService, records } = await openIngress()
  await post('/v1/check', {}, 'delayed')
  const waiting = post('/v1/check', { wait: '20s' }, 'delayed')
  expect(await waitUntil(() => decisionService.delays.waiting === 1, { deadlineMs: 10_000 })).toBe(true)
  policy.replace(requirePolicy(policyText(upstreamPort).replace(sha256('delayed'), sha256('another')), 'weir.yaml'))
  expect((await waiting).json()).toMatchObject({ allowed: false, reason: 'unauthorized' })
  expect(records.at(-1)).toMatchObject({ subject: 'delayed', outcome: 'deny', reason: 'unauthorized', charged: 'no' })
})
