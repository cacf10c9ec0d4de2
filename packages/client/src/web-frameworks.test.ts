import { createServer, type RequestListener } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Arrival, callerKey, type OptionalCheck, type WithWeir } from './check-arrival.ts'
import { createClient, type WeirClient } from './create-client.ts'
import { decision, openStubWeir, refusal, type StubWeir, sendJson } from './testing/stub-weir.ts'
import { weirExpress } from './weir-express.ts'
import { weirFastify } from './weir-fastify.ts'

let weir: StubWeir
beforeEach(async () => {
  weir = await openStubWeir()
})
afterEach(() => weir[Symbol.asyncDispose]())

type Request = WithWeir & { headers: NodeJS.Dict<string | string[]>; url?: string }
interface Options {
  readonly client: WeirClient
  ask?(request: Request): OptionalCheck | Promise<OptionalCheck>
}

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

/** What the application behind the check sees of it. */
const seen = ({ headers, weir: result }: Request) => ({ degraded: headers['weir-degraded'], allowed: result?.allowed })

const frameworks = {
  async fastify(options: Options, times = 1, onClose = () => {}) {
    const app = fastify()
    app.addHook('onRequest', async (_, reply) => void reply.raw.once('close', onClose))
    for (let at = 0; at < times; at += 1) await app.register(weirFastify, options)
    app.get('/things/:id', async (request: Request) => seen(request))
    app.setErrorHandler((error: Error & { statusCode?: number }, _, reply) =>
      reply.code(error.statusCode ?? 500).send({ error: error.message }),
    )
    onTestFinished(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
  async express(options: Options, times = 1, onClose = () => {}) {
    const app = express()
    app.use((_, response, next) => {
      response.once('close', onClose)
      next()
    })
    for (let at = 0; at < times; at += 1) app.use(weirExpress(options))
    app.get('/things/:id', (request, response) => {
      response.json(seen(request))
    })
    const onError: express.ErrorRequestHandler = (error, _request, response, _next) => {
      response.status(error.statusCode ?? 500).json({ error: error.message })
    }
    app.use(onError)
    return listen(app)
  },
}

describe.each(['fastify', 'express'] as const)('%s', (name) => {
  async function get(
    options: Partial<Options> = {},
    headers: Readonly<Record<string, string>> = {},
    path = '/things/7?all=1',
  ) {
    const client = createClient({ url: weir.url, key: 'secret' })
    onTestFinished(() => client.close())
    const url = await frameworks[name]({ client, ...options })
    const answer = await fetch(`${url}${path}`, { headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }

  it('asks for the route, and passes on what is allowed with its limits', async () => {
    const { status, headers, text } = await get()
    expect([status, JSON.parse(text)]).toEqual([200, { allowed: true }])
    expect([headers.get('ratelimit'), headers.get('weir-decision')]).toEqual(['"minute";r=9;t=60', '0199'])
    expect(weir.asked[0]?.body).toEqual({ route: 'GET /things/7' })
  })

  it.each([
    [refusal(1_500), 429, { 'retry-after': '2' }, 'https://iana.org/assignments/http-problem-types#quota-exceeded'],
    [
      refusal(900, { reason: 'blocked' }),
      429,
      { 'retry-after': '1' },
      'https://iana.org/assignments/http-problem-types#quota-exceeded',
    ],
    [
      refusal(1_000, { reason: 'unavailable' }),
      503,
      { 'retry-after': '1' },
      'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    ],
    [refusal(0, { reason: 'cost_exceeds_limit' }), 403, { 'retry-after': null }, 'urn:weir:problem:cost-exceeds-limit'],
    [
      refusal(0, { reason: 'unauthorized' }),
      401,
      { 'www-authenticate': 'Bearer', 'retry-after': null },
      'urn:weir:problem:unauthorized',
    ],
    [
      refusal(5, { on_exceed: 'challenge', challenge: 'https://c/' }),
      429,
      { 'weir-challenge': 'https://c/' },
      'https://iana.org/assignments/http-problem-types#quota-exceeded',
    ],
  ] as const)('answers the refusal %j with %i', async (answer, status, headers, type) => {
    weir.answerWith((_, response) => sendJson(response, answer))
    const found = await get()
    expect([found.status, found.headers.get('content-type')]).toEqual([status, 'application/problem+json'])
    expect(found.headers.get('ratelimit')).toBe('"minute";r=9;t=60')
    for (const [key, value] of Object.entries(headers)) expect([key, found.headers.get(key)]).toEqual([key, value])
    expect(JSON.parse(found.text)).toMatchObject({ type, status })
  })

  it('closes the connection where the limit says drop', async () => {
    weir.answerWith((_, response) => sendJson(response, refusal(1_000, { on_exceed: 'drop' })))
    await expect(get()).rejects.toThrow('fetch failed')
  })

  it('names a degraded request to the application, and trusts no caller that claims one', async () => {
    expect(JSON.parse((await get({}, { 'weir-degraded': 'minute' })).text)).toEqual({ allowed: true })
    const degraded = { reason: 'limit', denied_by: 'minute', on_exceed: 'degrade' }
    weir.answerWith((_, response) => sendJson(response, decision(degraded)))
    expect(JSON.parse((await get()).text)).toEqual({ allowed: true, degraded: 'minute' })
  })

  it('asks what the application says, or not at all', async () => {
    await get({ ask: (request) => ({ key: callerKey(request), cost: 3 }) }, { authorization: 'Bearer abc' })
    await get({ ask: (request) => ({ key: callerKey(request) }) }, { 'x-api-key': 'def' })
    expect((await get({ ask: () => undefined })).status).toBe(200)
    expect(weir.asked.map(({ body }) => body)).toEqual([{ key: 'abc', cost: 3 }, { key: 'def' }])
  })

  it.each([
    ['no key', {}],
    ['a key that is too long for one', { authorization: `Bearer ${'k'.repeat(257)}` }],
  ])('answers a request with %s with 401, without asking Weir', async (_, headers) => {
    const { status } = await get({ ask: (request) => ({ key: callerKey(request) }) }, headers)
    expect([status, weir.asked.length]).toEqual([401, 0])
  })

  it('asks without the query, also where `ask` has left it in the route', async () => {
    await get({ ask: ({ url }) => ({ route: `GET ${url}` }) })
    expect(weir.asked[0]?.body).toEqual({ route: 'GET /things/7' })
  })

  it.each(['/things/a%2Fb', '/things/a;b', `/things${'/abc'.repeat(600)}`])(
    'answers a path that Weir does not read with 400: %s',
    async (path) => {
      weir.answerWith((_, response) => sendJson(response, { type: 'urn:weir:problem:bad-request', detail: 'odd' }, 400))
      const { status, text } = await get({}, {}, path)
      expect([status, JSON.parse(text)]).toMatchObject([400, { type: 'urn:weir:problem:bad-request', status: 400 }])
      // What is wrong with the question itself is no fault of the caller.
      expect((await get()).status).toBe(500)
    },
  )

  it('answers an attribute that is too long for Weir with 400', async () => {
    weir.answerWith((_, response) => sendJson(response, { type: 'urn:weir:problem:bad-request', detail: 'long' }, 400))
    const ask = ({ headers }: Arrival) => ({ subject: 'acme', attributes: { model: String(headers['x-model']) } })
    const { status, text } = await get({ ask }, { 'x-model': 'm'.repeat(257) })
    expect([status, JSON.parse(text).type]).toEqual([400, 'urn:weir:problem:bad-request'])
    expect((await get({ ask }, { 'x-model': 'm'.repeat(256) })).status).toBe(500)
  })

  it('leaves errors to the application', async () => {
    weir.answerWith((_, response) => sendJson(response, {}, 500))
    const { status, text } = await get()
    expect([status, text]).toEqual([503, expect.stringContaining('Weir answered /v1/check with 500')])
    const broken = () => {
      throw new Error('ask is broken')
    }
    expect(await get({ ask: broken })).toMatchObject({ status: 500, text: expect.stringContaining('ask is broken') })
  })

  it('keeps what another check of the same request has stored', async () => {
    const degraded = { reason: 'limit', denied_by: 'minute', on_exceed: 'degrade' }
    weir.answerWith((_, response) => sendJson(response, decision(weir.asked.length === 1 ? degraded : {})))
    const client = createClient({ url: weir.url, key: 'secret' })
    onTestFinished(() => client.close())
    const url = await frameworks[name]({ client }, 2)
    const answer = await fetch(`${url}/things/7`, { headers: { 'weir-degraded': 'own' } })
    expect([weir.asked.length, await answer.json()]).toEqual([2, { allowed: true, degraded: 'minute' }])
  })

  it('checks nothing for a client that left while `ask` was busy', async () => {
    const asking = Promise.withResolvers<OptionalCheck>()
    let isAsked = false
    const ask = () => {
      isAsked = true
      return asking.promise
    }
    const client = createClient({ url: weir.url, key: 'secret' })
    onTestFinished(() => client.close())
    let closed = false
    const url = await frameworks[name]({ client, ask }, 1, () => {
      closed = true
    })
    const caller = new AbortController()
    const answer = fetch(`${url}/things/7`, { signal: caller.signal })
    await expect.poll(() => isAsked).toBe(true)
    caller.abort(new Error('left'))
    await expect(answer).rejects.toThrow('left')
    await expect.poll(() => closed).toBe(true)
    asking.resolve({ wait: '30s' })
    await client.check({ subject: 'last' })
    expect(weir.asked.map(({ body }) => body)).toEqual([{ subject: 'last' }])
  })

  it('cancels a waiting check when its client leaves', async () => {
    weir.answerWith(() => {})
    const client = createClient({ url: weir.url, key: 'secret' })
    onTestFinished(() => client.close())
    const url = await frameworks[name]({ client, ask: () => ({ wait: '30s' }) })
    const caller = new AbortController()
    const answer = fetch(`${url}/things/7`, { signal: caller.signal })
    await expect.poll(() => weir.asked.length).toBe(1)
    caller.abort(new Error('left'))
    await expect(answer).rejects.toThrow('left')
    await expect.poll(() => weir.asked[0]?.socket.destroyed).toBe(true)
  })
})

it.each([
  ['refused', refusal(1_000), 0],
  ['allowed', decision(), 1],
] as const)(
  'express: a request that another middleware has answered meanwhile is left as it is when %s',
  async (_, answer, passes) => {
    const client = createClient({ url: weir.url, key: 'secret' })
    onTestFinished(() => client.close())
    let giveUp = () => {}
    weir.answerWith((_, response) => {
      giveUp()
      sendJson(response, answer)
    })
    const app = express()
    const seen = { errors: [] as unknown[], passes: 0 }
    app.use((_request, response, next) => {
      giveUp = () => void response.status(503).end('too late')
      next()
    })
    app.use(weirExpress({ client }))
    app.use(() => {
      seen.passes += 1
    })
    const onError: express.ErrorRequestHandler = (error, _request, _response, _next) => void seen.errors.push(error)
    app.use(onError)
    const url = await listen(app)
    expect(await (await fetch(url)).text()).toBe('too late')
    // Behind the answer to the first.
    await client.check()
    await expect.poll(() => seen).toEqual({ errors: [], passes })
  },
)
