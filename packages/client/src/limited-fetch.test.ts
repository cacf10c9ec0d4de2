import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type ClientOptions, createClient } from './create-client.ts'
import { createLimitedFetch, type LimitedFetchOptions, retryAfterMs } from './limited-fetch.ts'
import { openStubApi, type StubApi } from './testing/stub-api.ts'
import { decision, openStubWeir, refusal, type StubWeir, sendJson } from './testing/stub-weir.ts'

let weir: StubWeir
let api: StubApi
beforeEach(async () => {
  weir = await openStubWeir()
  api = await openStubApi()
})
afterEach(async () => {
  await weir[Symbol.asyncDispose]()
  await api[Symbol.asyncDispose]()
})

function open(options: Partial<LimitedFetchOptions> = {}, clientOptions: Partial<ClientOptions> = {}) {
  const client = createClient({ url: weir.url, key: 'secret', ...clientOptions })
  onTestFinished(() => client.close())
  return createLimitedFetch({ client, ...options })
}

/** Instead of the network, where one call may overtake another: writes down what is sent. */
function openSent() {
  const paths: string[] = []
  const fetch: LimitedFetchOptions['fetch'] = async (input) => {
    paths.push(new URL(String(input)).pathname)
    return new Response()
  }
  return { paths, fetch }
}

const checks = () => weir.asked.filter(({ path }) => path === '/v1/check').map(({ body }) => body)
const pauses = () => weir.asked.filter(({ path }) => path === '/v1/pause').map(({ body }) => body)
const refuseAll = (retryAfterMs: number) => weir.answerWith((_, response) => sendJson(response, refusal(retryAfterMs)))
const never = () => {}
/** What a call comes to without Weir, by what its client has been told. */
const withoutWeir = [
  ['allow', 200],
  ['deny', 'timeout'],
  ['throw', 'unavailable'],
] as const
const cameTo = (call: Promise<Response>) =>
  call.then(
    ({ status }) => status,
    (error) => error.code,
  )

describe('a call', () => {
  it('is asked for with its cost, and answered as fetch answers it', async () => {
    const limitedFetch = open({ ask: { subject: 'api', route: 'GET /issues' }, cost: (input) => String(input).length })
    const response = await limitedFetch(`${api.url}/`, { method: 'POST', body: 'text', headers: { 'x-own': 'yes' } })
    expect([response.status, await response.text()]).toEqual([200, 'done'])
    expect(checks()).toMatchObject([{ subject: 'api', route: 'GET /issues', cost: api.url.length + 1 }])
    expect(api.arrived).toMatchObject([{ body: 'text', request: { method: 'POST', headers: { 'x-own': 'yes' } } }])
  })

  it('takes a Request, redirects and streams', async () => {
    api.answerWith(({ path }, response) => {
      if (path === '/') response.writeHead(307, { location: '/there' }).end()
      else response.write('first', () => response.end(' second'))
    })
    const response = await open()(new Request(api.url, { method: 'PUT', body: 'text' }))
    expect([response.redirected, await response.text()]).toEqual([true, 'first second'])
    expect(api.arrived.map(({ body }) => body)).toEqual(['text', 'text'])
    expect(checks()).toHaveLength(1)
  })

  it.each(withoutWeir)(
    'while Weir is unavailable and onUnavailable is %s comes to %s',
    async (onUnavailable, expected) => {
      weir.answerWith((_, response) => sendJson(response, {}, 503))
      expect(await cameTo(open({ timeoutMs: 500 }, { onUnavailable })(api.url))).toBe(expected)
    },
  )
})

describe('without capacity, a call that does not wait', () => {
  it('throws, with the time after which it is worth trying', async () => {
    refuseAll(1_234)
    await expect(open({ mode: 'throw' })(api.url)).rejects.toMatchObject({ code: 'refused', retryAfterMs: 1_234 })
    expect(checks()[0]).not.toHaveProperty('wait')
    expect(api.arrived).toHaveLength(0)
  })
})

describe('without capacity, calls that wait', () => {
  it('go one after the other, in order, and only the first asks and waits in Weir', async () => {
    let underWay = 0
    let most = 0
    weir.answerWith(async (_, response) => {
      underWay += 1
      most = Math.max(most, underWay)
      // Long enough for whatever else was sent at the same time.
      await new Promise((done) => setImmediate(() => setImmediate(done)))
      underWay -= 1
      sendJson(response, weir.asked.length % 2 === 0 ? refusal(10) : decision())
    })
    const sent = openSent()
    const limitedFetch = open({ timeoutMs: 5_000, fetch: sent.fetch })
    const paths = Array.from({ length: 20 }, (_, at) => `/${at}`)
    await Promise.all(paths.map((path) => limitedFetch(api.url + path)))
    expect(sent.paths).toEqual(paths)
    expect(most).toBe(1)
    expect(checks().every(({ wait }) => wait !== undefined)).toBe(true)
  })

  it('ask concurrently while there is plenty of capacity, and stay in order when it is used up', async () => {
    let left = 30
    let underWay = 0
    let most = 0
    weir.answerWith(async (_, response) => {
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise((done) => setImmediate(() => setImmediate(done)))
      underWay -= 1
      left -= 1
      // From the twenty-first on, every third is refused for a moment.
      if (left < 10 && left % 3 === 0) return sendJson(response, refusal(5))
      sendJson(response, decision({ limits: [{ name: 'minute', size: 30, used: 0, remaining: left, reset_ms: 10 }] }))
    })
    const sent = openSent()
    const limitedFetch = open({ timeoutMs: 5_000, fetch: sent.fetch })
    await Promise.all(Array.from({ length: 40 }, (_, at) => limitedFetch(`${api.url}/${at}`)))
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(8)
    expect(sent.paths).toHaveLength(40)
    expect(sent.paths.slice(25)).toEqual(Array.from({ length: 15 }, (_, at) => `/${at + 25}`))
  })

  it('throw queue_full when too many calls wait', async () => {
    weir.answerWith(never)
    const limitedFetch = open({ queueMax: 2 })
    const left = new AbortController()
    const waiting = [1, 2].map(() => limitedFetch(api.url, { signal: left.signal }))
    await expect(limitedFetch(api.url)).rejects.toMatchObject({ code: 'queue_full', statusCode: 503 })
    left.abort(new Error('left'))
    for (const one of waiting) await expect(one).rejects.toThrow('left')
  })

  it('throw timeout when their time is over', async () => {
    api.answerWith((_, response) => response.writeHead(429, { 'retry-after': '3600' }).end())
    const limitedFetch = open({ timeoutMs: 1_000 })
    expect((await limitedFetch(api.url)).status).toBe(429)
    await expect(limitedFetch(api.url)).rejects.toMatchObject({ code: 'timeout', statusCode: 503 })
  })

  it.each(withoutWeir)(
    'while Weir hangs and onUnavailable is %s come to %s within their time',
    async (onUnavailable, expected) => {
      weir.answerWith(never)
      // Long where it is Weir's own time that is over first.
      const timeoutMs = expected === 'timeout' ? 300 : 2_000
      expect(await cameTo(open({ timeoutMs }, { onUnavailable })(api.url))).toBe(expected)
      await expect.poll(() => weir.asked[0]?.socket.destroyed).toBe(true)
    },
  )

  it('throw timeout immediately when no capacity will come in their time', async () => {
    refuseAll(3_600_000)
    await expect(open()(api.url)).rejects.toMatchObject({ code: 'timeout', retryAfterMs: 3_600_000 })
  })

  it('throw refused where waiting does not help', async () => {
    weir.answerWith((_, response) => sendJson(response, refusal(0, { reason: 'cost_exceeds_limit' })))
    await expect(open()(api.url)).rejects.toMatchObject({ code: 'refused' })
  })

  it('leave the queue when they are aborted, and let the next go on', async () => {
    weir.answerWith(never)
    const limitedFetch = open()
    const controller = new AbortController()
    const first = limitedFetch(api.url, { signal: controller.signal })
    const second = limitedFetch(new Request(`${api.url}/second`, { signal: controller.signal }))
    const third = limitedFetch(`${api.url}/third`)
    await expect.poll(() => weir.asked.length).toBe(1)
    weir.answerWith((_, response) => sendJson(response, decision()))
    controller.abort(new Error('changed my mind'))
    await expect(first).rejects.toThrow('changed my mind')
    await expect(second).rejects.toThrow()
    await third
    expect(api.arrived.map(({ path }) => path)).toEqual(['/third'])
    await expect.poll(() => weir.asked[0]?.socket.destroyed).toBe(true)
  })

  it('wait in the client if Weir does not know how to wait', async () => {
    let refusals = 3
    weir.answerWith(({ body }, response) => {
      if ('wait' in body) return sendJson(response, { type: 'urn:weir:problem:bad-request', detail: 'unknown' }, 400)
      refusals -= 1
      return sendJson(response, refusals > 0 ? refusal(20) : decision())
    })
    const limitedFetch = open()
    expect((await limitedFetch(api.url)).status).toBe(200)
    expect((await limitedFetch(api.url)).status).toBe(200)
    expect(checks().filter(({ wait }) => wait !== undefined)).toHaveLength(1)
  })

  it('throw what is wrong with their checks', async () => {
    weir.answerWith((_, response) => sendJson(response, { type: 'urn:weir:problem:x', detail: 'no such subject' }, 400))
    const limitedFetch = open()
    await expect(limitedFetch(api.url)).rejects.toThrow('no such subject')
    weir.answerWith((_, response) => sendJson(response, decision()))
    await limitedFetch(api.url)
    expect(checks().map(({ wait }) => wait !== undefined)).toEqual([true, false, true])
  })
})

describe('a 429 of the other side', () => {
  /** Says 429 so often, then 200. */
  const busy = (times: number, headers: () => Record<string, string>, status = 429) =>
    api.answerWith((_, response) => {
      if (api.arrived.length <= times) response.writeHead(status, headers()).end('busy')
      else response.end('done')
    })
  const soon = () => ({ 'retry-after': '1' })

  it('pauses this process and all others, and the call is sent again after it, before later ones', async () => {
    busy(1, soon)
    const limitedFetch = open({ ask: { subject: 'api' } })
    const first = limitedFetch(`${api.url}/first`, { method: 'POST', body: new URLSearchParams({ a: '1' }) })
    await expect.poll(() => pauses().length).toBe(1)
    const later = limitedFetch(`${api.url}/later`)
    expect([(await first).status, (await later).status]).toEqual([200, 200])
    expect(pauses()).toEqual([{ subject: 'api', limit: 'minute', for: '1000ms' }])
    expect(api.arrived.map(({ path, body }) => path + body)).toEqual(['/firsta=1', '/firsta=1', '/later'])
    const [before, after] = api.arrived
    // A timer may be early by less than a millisecond.
    expect((after?.atMs ?? 0) - (before?.atMs ?? 0)).toBeGreaterThanOrEqual(999)
  })

  it('is waited for however long the answer took, which does not count as waiting', async () => {
    let clockMs = 0
    const busyThenDone = [new Response('', { status: 429, headers: { 'retry-after': '0.05' } }), new Response('done')]
    const limitedFetch = open({
      timeoutMs: 300,
      fetch: async () => {
        const beganMs = performance.now()
        // As long as a slow answer.
        await expect.poll(() => (clockMs = performance.now() - beganMs), { timeout: 5_000 }).toBeGreaterThan(300)
        return busyThenDone.shift() ?? Response.error()
      },
    })
    expect((await limitedFetch(api.url)).status).toBe(200)
    expect(clockMs).toBeGreaterThan(300)
  })

  it('with a date is waited for by the clock of the other side', async () => {
    const date = 'Sun, 22 Nov 2020 06:00:00 GMT'
    busy(1, () => ({ date, 'retry-after': 'Sun, 22 Nov 2020 06:00:01 GMT' }))
    expect((await open()(api.url)).status).toBe(200)
    await expect.poll(pauses).toMatchObject([{ for: '1000ms' }])
  })

  it.each([
    ['a date', () => ({ 'retry-after': new Date(Date.now() + 1_500).toUTCString() }), 429],
    ['no time at all', () => ({}), 429],
    ['no time to wait', () => ({ 'retry-after': '0' }), 429],
    ['503 and a time', soon, 503],
  ] as const)('with %s is waited for', async (_, headers, status) => {
    busy(1, headers, status)
    expect((await open()(api.url)).status).toBe(200)
    // No call waits until the other processes know of the pause.
    await expect.poll(() => [api.arrived.length, pauses().length]).toEqual([2, 1])
  })

  it.each([
    ['a stream', () => new Blob(['text']).stream()],
    [
      'an iterable',
      () =>
        (async function* () {
          yield Buffer.from('text')
        })(),
    ],
  ] as const)('to a call whose body is %s is the answer of the call', async (_, body) => {
    busy(1, soon)
    const init: RequestInit = Object.assign({ method: 'POST', duplex: 'half' as const }, { body: body() })
    const response = await open()(api.url, init)
    expect([response.status, await response.text()]).toEqual([429, 'busy'])
    await expect.poll(() => pauses().length).toBe(1)
    expect(api.arrived).toHaveLength(1)
  })

  it('is the answer when it comes too often, would last too long, or the call does not wait', async () => {
    busy(9, () => ({ 'retry-after': '0' }))
    expect((await open({ attemptsMax: 2 })(api.url)).status).toBe(429)
    expect(api.arrived).toHaveLength(2)
    busy(99, () => ({ 'retry-after': '3600' }))
    expect((await open()(api.url)).status).toBe(429)
    busy(99, soon)
    const limitedFetch = open({ mode: 'throw' })
    expect((await limitedFetch(api.url)).status).toBe(429)
    await expect(limitedFetch(api.url)).rejects.toMatchObject({ code: 'refused', retryAfterMs: expect.any(Number) })
    expect(api.arrived).toHaveLength(4)
  })

  it('pauses the limit that was named, no longer than allowed, and says so if that failed', async () => {
    weir.answerWith(({ path }, response) =>
      sendJson(response, path === '/v1/check' ? decision() : {}, path === '/v1/check' ? 200 : 404),
    )
    busy(9, () => ({ 'retry-after': '3600' }))
    const errors: unknown[] = []
    const onPauseFailed = (error: unknown) => void errors.push(error)
    await open({ limit: 'hour', pauseMsMax: 90_000, onPauseFailed })(api.url)
    await expect.poll(() => errors).toMatchObject([{ code: 'not_found' }])
    expect(pauses()).toEqual([{ limit: 'hour', for: '90000ms' }])
  })

  it('is not followed by a pause when a 503 names no time', async () => {
    busy(1, () => ({}), 503)
    expect((await open()(api.url)).status).toBe(503)
    expect(pauses()).toHaveLength(0)
  })
})

it.each([
  ['2', 2_000],
  ['0', 0],
  [' 10 ', 10_000],
  ['1.5', 1_500],
  ['Sun, 22 Nov 2026 06:00:30 GMT', 30_000],
  ['Sunday, 22-Nov-26 06:00:30 GMT', 30_000],
  ['Sun Nov 22 06:00:30 2026 GMT', 30_000],
  ['Sun Nov 22 06:00:30 2026', 30_000],
  ['Sun, 22 Nov 2026 05:00:00 GMT', 0],
  [null, undefined],
  ['', undefined],
  ['-5', undefined],
  ['1e3', undefined],
  ['soon', undefined],
  ['NaN', undefined],
  ['Someday, some time', undefined],
])('Retry-After %j asks for %j ms', (header, expected) => {
  expect(retryAfterMs(header, Date.parse('2026-11-22T06:00:00Z'))).toBe(expected)
})
