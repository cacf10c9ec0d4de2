import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../support/until.ts'
import { openProxy } from './open-proxy.ts'

const own = 'Host: api.test\r\nX-API-Key: acme-key\r\n'

describe('an answer', () => {
  it('begins at the client when it begins at the upstream, and each piece comes when it is sent', async () => {
    const pieces = Promise.withResolvers<{ write(piece: string): void; end(): void }>()
    const { port } = await openProxy({
      serve: (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        pieces.resolve(response)
      },
    })
    const headers = { host: 'api.test', 'x-api-key': 'acme-key' }
    const sent = request({ host: '127.0.0.1', port, headers, agent: false }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    const upstream = await pieces.promise
    for (const piece of ['data: 1\n\n', 'data: 2\n\n']) {
      upstream.write(piece)
      expect(String((await once(answer, 'data'))[0])).toBe(piece)
    }
    upstream.end()
    await once(answer, 'end')
  })

  it('to HEAD, and of 204 and 304, has no body, keeps its length, and leaves the connection usable', async () => {
    const { raw } = await openProxy({
      serve: ({ method, url }, response) => {
        if (method === 'HEAD') response.writeHead(200, { 'content-length': '1234' }).end()
        else response.writeHead(Number(url?.slice(1)), { etag: '"a"' }).end()
      },
    })
    const ask = (line: string) => `${line} HTTP/1.1\r\n${own}\r\n`
    const last = `GET /200 HTTP/1.1\r\n${own}Connection: close\r\n\r\n`
    const said = await raw(ask('HEAD /') + ask('GET /204') + ask('GET /304') + last)
    expect(said.match(/HTTP\/1\.1 \d+/g)).toEqual([200, 204, 304, 200].map((status) => `HTTP/1.1 ${status}`))
    const [head = '', noContent = '', notModified = ''] = said.split(/(?=HTTP\/1\.1 )/)
    expect(head).toContain('content-length: 1234\r\n')
    for (const part of [head, noContent, notModified]) {
      expect(part).toMatch(/\r\n\r\n$/)
      expect(part.toLowerCase()).not.toContain('transfer-encoding')
    }
  })

  it.each([1, 4_096, 4_097, 70_000])(
    'of %d bytes keeps each of them, with a length and without, in a piece and in two',
    async (size) => {
      const body = Buffer.from(Array.from({ length: size }, (_, at) => (at * 37) % 256))
      const { port } = await openProxy({
        serve: ({ url }, response) => {
          response.writeHead(200, url?.startsWith('/length') ? { 'content-length': size } : {})
          if (!url?.endsWith('two')) return response.end(body)
          response.write(body.subarray(0, size / 2))
          return setImmediate(() => response.end(body.subarray(size / 2)))
        },
      })
      const headers = { host: 'api.test', 'x-api-key': 'acme-key' }
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      onTestFinished(() => agent.destroy())
      for (const path of ['/length', '/length/two', '/none', '/none/two']) {
        const sent = request({ host: '127.0.0.1', port, path, headers, agent }).end()
        const [answer] = (await once(sent, 'response')) as [IncomingMessage]
        const came = await buffer(answer)
        expect([path, came.equals(body)]).toEqual([path, true])
      }
    },
  )

  it('that is short leaves with its head in one write, and in its turn', async () => {
    const { app, raw } = await openProxy()
    const lists: { mock: { calls: unknown[] } }[] = []
    app.server.on('connection', (socket) => lists.push(vi.spyOn(socket, '_writev')))
    const single = await raw(`GET / HTTP/1.1\r\n${own}Connection: close\r\n\r\n`)
    expect(single).toMatch(/\r\n\r\nmade$/)
    expect(lists.map(({ mock }) => mock.calls.length)).toEqual([0])
    const twice = await raw(`GET / HTTP/1.1\r\n${own}\r\nGET / HTTP/1.1\r\n${own}Connection: close\r\n\r\n`)
    expect(twice.match(/\r\n\r\nmade(?:HTTP\/1\.1 200|$)/g)).toHaveLength(2)
  })

  it('keeps its trailers, but for those in the name of Weir', async () => {
    const { ask, seen } = await openProxy({
      serve: (_request, response) => {
        response.writeHead(200, { trailer: 'X-Sum, RateLimit' }).write('said')
        response.addTrailers([
          ['X-Sum', '7'],
          ['RateLimit', 'forged'],
        ])
        response.end()
      },
    })
    const answer = await ask({ headers: { te: 'gzip, trailers' } })
    expect(answer.trailers).toEqual({ 'x-sum': '7' })
    expect(seen[0]?.headers.te).toBe('trailers')
  })

  it('may be announced by 103, which comes through', async () => {
    const { ask } = await openProxy({
      serve: (_request, response) => {
        response.writeEarlyHints({ link: '</a.css>; rel=preload' })
        response.writeProcessing()
        response.end('made')
      },
    })
    expect(await ask()).toMatchObject({ status: 200, information: [103, 102], body: 'made' })
  })

  it.each([
    [
      'a 103 with two links',
      '103 Early Hints\r\nLink: </a.css>; rel=preload, </b.css>\r\n',
      /^HTTP.* 103 .*\r\nlink: <.*>\r\n\r\n/,
    ],
    ['a 103 whose link is none', '103 Early Hints\r\nLink: nonsense\r\n', /^HTTP.* 103 .*\r\nlink: nonsense\r\n\r\n/],
    ['a 104', '104 Upload\r\nLocation: /up\r\n', /^HTTP\/1\.1 104 Unknown\r\nlocation: \/up\r\n\r\n/],
    ['one of which Weir keeps all', '103 E\r\nX-Weir-A: b\r\nContent-Length: 9\r\n', /^HTTP.* 103 .*\r\n\r\n/],
  ])('comes through behind %s', async (_name, information, expected) => {
    const { raw } = await openProxy({
      serve: ({ socket }, response) => {
        socket.write(`HTTP/1.1 ${information}\r\n`)
        response.end('made')
      },
    })
    const said = await raw(`GET / HTTP/1.1\r\n${own}Connection: close\r\n\r\n`)
    expect(said).toMatch(expected)
    expect(said.slice(said.indexOf('\r\n\r\n') + 4)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*made/)
  })

  const unasked = 'HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n'
  it.each([
    ['in one piece', [unasked]],
    ['twice', [unasked + unasked]],
    ['in pieces', [...unasked]],
  ])('comes through behind a 100 that the upstream sends unasked, %s, and its body stays whole', async (_, pieces) => {
    const { ask, seen } = await openProxy({
      serve: async ({ socket }, response) => {
        for (const piece of pieces) {
          socket.write(piece)
          await new Promise((written) => setImmediate(written))
        }
        response.flushHeaders()
        response.end(unasked)
      },
    })
    const answers = [await ask(), await ask({ method: 'POST', body: 'b' })]
    expect(answers).toMatchObject([200, 200].map((status) => ({ status, information: [], body: unasked })))
    expect(seen).toHaveLength(2)
  })

  it('that comes before the body has ended reaches the client whole', async () => {
    const { raw, outcomes } = await openProxy({
      serve: (_request, response) => void response.writeHead(413, { 'content-length': '4' }).end('full'),
    })
    const head = `POST / HTTP/1.1\r\n${own}Content-Length: 50000000\r\n\r\n`
    expect(await raw(head + 'a'.repeat(1_000_000), /full$/)).toMatch(/^HTTP\/1\.1 413 [\s\S]*full$/)
    expect(outcomes).toMatchObject([{ status: 413, error: '' }])
  })

  it('to HTTP/1.0 ends with its connection, and is not chunked', async () => {
    const { raw } = await openProxy({
      serve: (_request, response) => void response.write('a', () => response.end('b')),
    })
    const said = await raw('GET / HTTP/1.0\r\nHost: api.test\r\nX-API-Key: acme-key\r\n\r\n')
    expect(said).toMatch(/\r\n\r\nab$/)
    expect(said.toLowerCase()).not.toContain('chunked')
  })
})

describe('a body', () => {
  it.each([
    ['POST', { 'content-length': '5' }],
    ['POST', { 'transfer-encoding': 'chunked' }],
    ['GET', { 'content-length': '5' }],
    ['DELETE', { 'transfer-encoding': 'chunked' }],
    ['OPTIONS', { 'content-length': '5' }],
  ])('of %s with %o reaches the upstream framed as it came', async (method, framing) => {
    const bodies: string[] = []
    const { ask, seen } = await openProxy({
      serve: async (incoming, response) => {
        bodies.push(await text(incoming))
        response.end('made')
      },
    })
    const answer = await ask({ method, headers: framing as Record<string, string>, body: 'hello' })
    expect([answer.status, bodies]).toEqual([200, ['hello']])
    expect(seen[0]?.headers).toMatchObject(framing)
  })

  it('that waits for 100 is asked for once it may come', async () => {
    const { ask, raw, seen } = await openProxy()
    const waits = { expect: '100-continue', 'content-length': '5' }
    const answer = await raw(
      `POST / HTTP/1.1\r\n${own}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
      /100 Continue\r\n\r\n/,
    )
    expect(answer).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    expect((await ask({ method: 'POST', headers: waits, body: 'hello' })).status).toBe(200)
    expect(seen.at(-1)?.headers).not.toHaveProperty('expect')
  })

  it.each([
    ['refused by a limit', 'poor-key', '/v1/search', 403],
    ['of an unauthenticated caller', 'wrong', '/', 401],
    ['on a path that cannot be read', 'acme-key', '/a%2fb', 400],
  ])('%s is never asked for, and its connection ends', async (_, key, path, status) => {
    const { raw, seen } = await openProxy()
    const said = await raw(
      `POST ${path} HTTP/1.1\r\nHost: api.test\r\nX-API-Key: ${key}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
    )
    expect(said).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*\\}$`))
    expect(said.toLowerCase()).toContain('connection: close')
    expect(seen).toEqual([])
  })
})

describe('a client that hangs up', () => {
  it.each([
    ['before there is an answer', () => undefined, 499],
    ['in the middle of the answer', 'begin', 200],
  ])('%s cancels the request at the upstream', async (_, how, status) => {
    let cancelled = false
    const { port, seen, outcomes } = await openProxy({
      serve: (_request, response) => {
        response.on('close', () => {
          cancelled = true
        })
        if (how === 'begin') response.write('begun')
      },
    })
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(`GET / HTTP/1.1\r\n${own}\r\n`)
    if (how === 'begin') await once(socket, 'data')
    await until(() => seen.length === 1, 10_000)
    socket.destroy()
    await until(() => cancelled && outcomes.length === 1, 10_000)
    expect(outcomes).toMatchObject([{ status, error: 'client_gone' }])
  })

  it('in the middle of its body cancels the request, and the upstream never sees a whole one', async () => {
    const ends: string[] = []
    const { port, outcomes } = await openProxy({
      serve: (incoming) => {
        incoming.resume().on('end', () => ends.push('end'))
        incoming.on('error', () => ends.push('broken'))
      },
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(`POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`)
    await until(() => outcomes.length === 0, 1_000)
    await once(socket, 'ready').catch(() => undefined)
    socket.destroy()
    await until(() => outcomes.length === 1, 10_000)
    await until(() => ends.length === 1, 10_000)
    expect(ends).toEqual(['broken'])
    expect(outcomes).toMatchObject([{ status: 499, error: 'client_gone' }])
  })
})

describe('connections', () => {
  it('are kept on both sides: 50 requests of one client need one each', async () => {
    const { port, app, upstreamSockets } = await openProxy()
    let opened = 0
    app.server.on('connection', () => {
      opened += 1
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const headers = { host: 'api.test', 'x-api-key': 'acme-key' }
    for (let n = 0; n < 50; n += 1) {
      const sent = request({ host: '127.0.0.1', port, headers, agent, method: 'POST' }).end('x')
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      expect(await text(answer)).toBe('made')
    }
    expect([opened, upstreamSockets.size]).toEqual([1, 1])
  })
})
