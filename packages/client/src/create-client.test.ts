import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type ClientOptions, createClient } from './create-client.ts'
import { createLimitedFetch } from './limited-fetch.ts'
import { decision, openStubWeir, refusal, type StubWeir, sendJson } from './testing/stub-weir.ts'

let weir: StubWeir
beforeEach(async () => {
  weir = await openStubWeir()
})
afterEach(() => weir[Symbol.asyncDispose]())

function open(options: Partial<ClientOptions> = {}) {
  const client = createClient({ url: weir.url, key: 'secret', ...options })
  onTestFinished(() => client.close())
  return client
}

const never = () => {}
const problem = (status: number) => ({ type: 'urn:weir:problem:some', title: 'Some', status, detail: 'words of Weir' })

describe('a check', () => {
  it('sends every field in the words of the API, and leaves out what is not given', async () => {
    await open().check({
      subject: 'acme',
      key: 'k',
      ip: '192.0.2.1',
      route: 'GET /',
      method: 'GET',
      cost: 2,
      peek: false,
      attributes: { model: 'small' },
      idempotencyKey: 'once',
      settle: '15m',
      wait: 1_500,
    })
    await open().check({ wait: 0, settle: '0s' })
    expect(weir.asked.map(({ body }) => body)).toEqual([
      {
        subject: 'acme',
        key: 'k',
        ip: '192.0.2.1',
        route: 'GET /',
        method: 'GET',
        cost: 2,
        peek: false,
        attributes: { model: 'small' },
        idempotency_key: 'once',
        settle: '900000ms',
        wait: '1500ms',
      },
      {},
    ])
    expect(weir.asked[0]?.headers.authorization).toBe('Bearer secret')
  })

  it('that is denied is a result, with the headers for the own answer', async () => {
    weir.answerWith((_, response) =>
      sendJson(response, refusal(1_200, { on_exceed: 'challenge', challenge: 'https://c' })),
    )
    expect(await open().check()).toEqual({
      allowed: false,
      reason: 'limit',
      id: '0199',
      deniedBy: 'minute',
      retryAfterMs: 1_200,
      onExceed: 'challenge',
      challenge: 'https://c',
      limits: [{ name: 'minute', size: 10, used: 1, remaining: 9, resetMs: 60_000 }],
      headers: { ratelimit: '"minute";r=9;t=60', 'weir-decision': '0199', 'retry-after': '2' },
    })
  })

  it('below a path is asked there', async () => {
    await open({ url: `${weir.url}/weir/` }).check()
    expect(weir.asked[0]?.path).toBe('/weir/v1/check')
  })

  it.each([
    [400, 'bad_request', 500],
    [401, 'unauthorized', 500],
    [403, 'forbidden', 500],
    [404, 'not_found', 500],
    [409, 'conflict', 500],
    [429, 'throttled', 500],
    [302, 'unexpected_answer', 500],
    [503, 'unavailable', 503],
  ])('answered with %i is an error %s with the words of Weir', async (status, code, statusCode) => {
    weir.answerWith((_, response) => sendJson(response, problem(status), status))
    const found = open().check()
    await expect(found).rejects.toMatchObject({ name: 'WeirClientError', code, statusCode, problem: problem(status) })
    await expect(found).rejects.toThrow('words of Weir')
  })

  it('that Weir decided and could not record is a denial, even if requests pass while Weir is unavailable', async () => {
    const type = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
    weir.answerWith((_, response) => sendJson(response, { ...problem(503), type }, 503))
    expect(await open({ onUnavailable: 'allow' }).check()).toMatchObject({
      allowed: false,
      reason: 'journal_full',
      id: undefined,
      retryAfterMs: 1_000,
      headers: { 'retry-after': '1' },
    })
  })

  it.each(['<html>', '[]', '{"allowed":"yes"}'])('answered with %s is an unexpected answer', async (text) => {
    weir.answerWith((_, response) => void response.end(text))
    await expect(open({ onUnavailable: 'allow' }).check()).rejects.toMatchObject({ code: 'unexpected_answer' })
  })

  it('ends with the reason of its signal, and closes its connection', async () => {
    weir.answerWith(never)
    const controller = new AbortController()
    const found = open({ onUnavailable: 'allow' }).check({}, { signal: controller.signal })
    await expect.poll(() => weir.asked.length).toBe(1)
    controller.abort(new Error('changed my mind'))
    await expect(found).rejects.toThrow('changed my mind')
    await expect.poll(() => weir.asked[0]?.socket.destroyed).toBe(true)
    await expect(open().check({}, { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before')
  })

  it('after the client was closed is refused as such', async () => {
    const client = createClient({ url: weir.url, key: 'secret' })
    await client.close()
    await expect(client.check()).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('while Weir is unavailable', () => {
  const outages = [
    ['answers nothing', never],
    ['breaks off', ({ socket }: { socket: { destroy(): unknown } }) => void socket.destroy()],
  ] as const
  const results = [
    ['allow', { allowed: true, reason: 'unavailable', retryAfterMs: 0, headers: {} }],
    ['deny', { allowed: false, reason: 'unavailable', retryAfterMs: 1_000, headers: { 'retry-after': '1' } }],
  ] as const

  it.each(outages.flatMap(([how, answer]) => results.map((one) => [how, ...one, answer] as const)))(
    'and %s, onUnavailable %s decides',
    async (_, onUnavailable, expected, answer) => {
      weir.answerWith(answer)
      expect(await open({ onUnavailable, timeoutMs: 50 }).check()).toMatchObject(expected)
    },
  )

  it('or its port is closed, a check is an error unless onUnavailable says otherwise', async () => {
    const { url } = weir
    await weir[Symbol.asyncDispose]()
    const client = createClient({ url, key: 'secret' })
    onTestFinished(() => client.close())
    await expect(client.check()).rejects.toMatchObject({
      code: 'unavailable',
      statusCode: 503,
      cause: { code: 'ECONNREFUSED' },
      // Frameworks show it to callers: not where Weir is.
      message: 'Weir could not be asked for /v1/check: ECONNREFUSED',
    })
  })

  it('the wait of a check does not count as silence', async () => {
    let admit = never
    weir.answerWith(({ body }, response) => {
      if (body.wait !== undefined) admit = () => sendJson(response, decision())
    })
    const client = open({ timeoutMs: 50 })
    const waiting = client.check({ wait: '20s' })
    await expect.poll(() => weir.asked.length).toBe(1)
    await expect(client.check()).rejects.toThrow('no response within 50 ms')
    admit()
    expect(await waiting).toMatchObject({ allowed: true, reason: 'ok' })
  })
})

describe('the time of a check', () => {
  it('is kept while there is no connection', async () => {
    // It takes connections and never says a word of TLS.
    const silent = createServer()
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
    const sockets = new Set<{ destroy(): unknown }>()
    silent.on('connection', (socket) => sockets.add(socket))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const address = silent.address()
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
    const client = createClient({ url, key: 'secret', timeoutMs: 30_000 })
    await expect(client.check({}, { timeoutMs: 50 })).rejects.toThrow('no response within 50 ms')
    const signal = AbortSignal.timeout(50)
    await expect(client.check({}, { signal })).rejects.toThrow('timeout')
  })

  it('is that of its own, however many others wait', async () => {
    weir.answerWith(({ body }, response) => {
      if (body.wait === undefined) sendJson(response, decision())
    })
    const left = new AbortController()
    const client = open({ timeoutMs: 10_000 })
    const waiting = Array.from({ length: 256 }, () => client.check({ wait: '60s' }, { signal: left.signal }))
    for (const one of waiting) one.catch(never)
    expect(await client.check()).toMatchObject({ reason: 'ok' })
    // One more that would wait is asked without.
    expect(await client.check({ wait: '60s' })).toMatchObject({ reason: 'ok' })
    left.abort(new Error('left'))
    for (const one of waiting) await expect(one).rejects.toThrow('left')
    const waits = weir.asked.length
    weir.answerWith((_, response) => sendJson(response, decision()))
    await client.check({ wait: '60s' })
    expect(weir.asked[waits]?.body).toEqual({ wait: '60000ms' })
  })
})

describe('what cannot be meant is refused and never taken for an outage', () => {
  it.each(['', 'secret\n', ' secret', 'sécret'])('the key %j', (key) => {
    expect(() => open({ key, onUnavailable: 'allow' })).toThrow(TypeError)
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 3e9, JSON.parse('"5s"')])('the time %s', async (time) => {
    expect(() => open({ onUnavailable: 'allow', timeoutMs: time })).toThrow('timeoutMs is')
    await expect(open({ onUnavailable: 'allow' }).check({}, { timeoutMs: time })).rejects.toThrow('timeoutMs is')
    for (const name of ['timeoutMs', 'pauseMsMax']) {
      const wrong = Object.assign({ client: open() }, { [name]: time })
      expect(() => createLimitedFetch(wrong)).toThrow(`${name} is`)
    }
    expect(weir.asked).toHaveLength(0)
  })

  it('an answer that is no HTTP', async () => {
    weir.answerWith(({ socket }) => void socket.end('220 mail ready\r\n\r\n'))
    await expect(open({ onUnavailable: 'allow' }).check()).rejects.toMatchObject({ code: 'unexpected_answer' })
  })
})

describe('a connection lost in the middle', () => {
  it.each([
    ['under an idempotency key', { idempotencyKey: 'once' }, 2],
    ['of a peek', { peek: true }, 2],
    ['of a check that would be charged twice', {}, 1],
  ])('%s', async (_, request, times) => {
    weir.answerWith(({ socket }, response) => {
      if (weir.asked.length === 1) socket.destroy()
      else sendJson(response, decision())
    })
    const result = await open({ onUnavailable: 'deny' }).check(request)
    expect([weir.asked.length, result.allowed]).toEqual([times, times === 2])
  })
})

describe('other questions', () => {
  it('pause a limit', async () => {
    weir.answerWith((_, response) => sendJson(response, { limit: 'minute', retry_after_ms: 2_000 }))
    expect(await open().pause({ subject: 'api', limit: 'minute', for: 2_000 })).toEqual({ retryAfterMs: 2_000 })
    expect(weir.asked).toMatchObject([{ path: '/v1/pause', body: { subject: 'api', limit: 'minute', for: '2000ms' } }])
  })

  it('settle a cost', async () => {
    weir.answerWith((_, response) =>
      sendJson(response, { id: '0199', cost: 3, adjustment: -7, correction: null, limits: [] }),
    )
    expect(await open().settle({ id: '0199', cost: 3 })).toEqual({ adjustment: -7 })
    expect(weir.asked).toMatchObject([{ path: '/v1/settle', body: { id: '0199', cost: 3 } }])
  })

  it('are as wrong as their durations', async () => {
    await expect(open().check({ wait: Number.NaN })).rejects.toThrow('not a duration')
    await expect(open().pause({ limit: 'minute', for: -1 })).rejects.toThrow('not a duration')
  })
})
