import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../support/until.ts'
import { openProxy } from './open-proxy.ts'

const own = 'Host: api.test\r\nX-API-Key: acme-key\r\n'
const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

/** Accepts a WebSocket (RFC 6455) and sends every short text frame back. */
function echo(request: IncomingMessage, socket: Socket) {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nWeir-Decision: forged\r\n\r\n`,
  )
  socket.on('data', (frame: Buffer) => {
    if ((frame[0] ?? 0) % 16 !== 1) return socket.end()
    const mask = frame.subarray(2, 6)
    const said = frame.subarray(6).map((byte, at) => byte ^ (mask[at % 4] ?? 0))
    socket.write(Buffer.concat([Buffer.from([0x81, said.length]), said]))
  })
  socket.on('error', () => undefined)
}

/** Switches to a protocol of bytes, which `speak` then speaks. */
const switching = (speak: (socket: Socket) => void) => (request: IncomingMessage, socket: Socket) => {
  socket.on('error', () => undefined)
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${request.headers.upgrade}\r\nConnection: Upgrade\r\n\r\n`)
  speak(socket)
}

describe('a WebSocket', () => {
  it('echoes, was decided and recorded like any request, and leaves an outcome when it ends', async () => {
    const { port, records, outcomes } = await openProxy({ onUpgrade: echo, identity: '{ keyQuery: api_key }' })
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/search?api_key=acme-key`)
    await once(socket, 'open')
    for (const text of ['hello', 'again']) {
      socket.send(text)
      expect((await once(socket, 'message'))[0].data).toBe(text)
    }
    expect([records.length, records[0]?.cost, outcomes.length]).toEqual([1, 5, 0])
    socket.close()
    await until(() => outcomes.length === 1, 10_000)
    expect(outcomes).toMatchObject([{ id: records[0]?.id, status: 101, error: '', bytes_out: 14 }])
  })

  it('gets the headers of Weir with its 101, and the upstream the caller', async () => {
    const requests: IncomingMessage['headers'][] = []
    const { raw, records } = await openProxy({
      onUpgrade: (request, socket) => {
        requests.push(request.headers)
        echo(request, socket)
      },
    })
    const said = await raw(`GET / HTTP/1.1\r\n${own}${upgrade}Sec-WebSocket-Key: a\r\n\r\n`, /\r\n\r\n/)
    expect(said).toMatch(/^HTTP\/1\.1 101 /)
    expect(said).toContain(`weir-decision: ${records[0]?.id}\r\n`)
    expect(said).toMatch(/ratelimit: "many";r=99999/)
    expect(said).not.toContain('forged')
    expect(requests[0]).toMatchObject({ upgrade: 'websocket', connection: 'upgrade', 'x-weir-subject': 'acme' })
    expect(requests[0]).not.toHaveProperty('x-api-key')
  })

  it.each([
    ['without a key', 'Host: api.test\r\n', 401, 'weir-decision'],
    ['with a limit used up', 'Host: api.test\r\nX-API-Key: poor-key\r\n', 429, 'retry-after'],
    ['for a host that nobody has', 'Host: other.test\r\nX-API-Key: acme-key\r\n', 404, 'weir-decision'],
    ['to an upstream that is gone', 'Host: gone.test\r\nX-API-Key: acme-key\r\n', 502, 'weir-decision'],
  ])('%s is answered in plain HTTP, and the connection ends', async (_, headers, status, header) => {
    const { raw, ask } = await openProxy({ onUpgrade: echo })
    await ask({ headers: { 'x-api-key': 'poor-key' } })
    const said = await raw(`GET / HTTP/1.1\r\n${headers}${upgrade}\r\n`)
    expect(said).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(said.toLowerCase()).toContain('content-type: application/problem+json')
    expect(said.toLowerCase()).toContain(`${header}: `)
    expect(said.toLowerCase()).toContain('connection: close')
  })

  it('asked for in HTTP/1.0 is not opened', async () => {
    const { raw } = await openProxy({ onUpgrade: echo })
    expect(await raw(`GET / HTTP/1.0\r\n${own}${upgrade}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('that the upstream answers with megabytes gets them all', async () => {
    const { raw, outcomes } = await openProxy({
      serve: (_request, response) => void response.end(Buffer.alloc(8_000_000)),
    })
    const said = await raw(`GET / HTTP/1.1\r\n${own}${upgrade}\r\n`)
    expect(said.length - said.indexOf('\r\n\r\n') - 4).toBe(8_000_000)
    expect(outcomes).toMatchObject([{ status: 200, error: '' }])
  })

  it("that the upstream refuses gets the upstream's answer", async () => {
    const { raw, outcomes } = await openProxy({
      serve: (_request, response) => void response.writeHead(426, { 'x-why': 'old' }).end('no'),
    })
    const said = await raw(`GET / HTTP/1.1\r\n${own}${upgrade}\r\n`)
    expect(said).toMatch(/^HTTP\/1\.1 426 [\s\S]*x-why: old[\s\S]*no/)
    expect(outcomes).toMatchObject([{ status: 426, error: '' }])
  })
})

describe('a tunnel', () => {
  it('carries megabytes both ways, to the last byte before either end closes', async () => {
    const megabytes = Buffer.alloc(8_000_000, 'weir')
    const { raw, outcomes } = await openProxy({ onUpgrade: switching((socket) => socket.end(megabytes)) })
    const said = await raw(`GET / HTTP/1.1\r\n${own}${upgrade}\r\n`)
    expect(said.length - said.indexOf('\r\n\r\n') - 4).toBe(megabytes.length)
    await until(() => outcomes.length === 1, 10_000)
    expect(outcomes[0]?.bytes_out).toBe(megabytes.length)
  })

  it.each([
    ['once it is open', false],
    ['before the upstream answers', true],
  ])(
    'whose client goes %s ends soon, although the upstream keeps its side open',
    async (_, isEarly) => {
      const switched: (() => void)[] = []
      const onUpgrade = (request: IncomingMessage, socket: Socket) => {
        switched.push(() => switching((one) => one.resume())(request, socket))
        if (!isEarly) switched[0]?.()
      }
      const { port, outcomes } = await openProxy({ onUpgrade })
      const client = connect(port, '127.0.0.1')
      client.write(`GET / HTTP/1.1\r\n${own}${upgrade}\r\n`)
      if (!isEarly) await once(client, 'data')
      client.end()
      await until(() => switched.length === 1, 10_000)
      if (isEarly) switched[0]?.()
      await until(() => outcomes.length === 1, 10_000)
      expect(outcomes).toMatchObject([{ status: 101, error: '' }])
      client.destroy()
    },
    25_000,
  )

  it('passes on what the client says right after its request', async () => {
    const { raw } = await openProxy({ onUpgrade: switching((socket) => socket.pipe(socket)) })
    const said = await raw(`GET / HTTP/1.1\r\n${own}${upgrade}\r\nearly`, /early$/)
    expect(said).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nearly$/)
  })

  it('is closed at the upstream when the client breaks off', async () => {
    let closed = false
    const { port, outcomes } = await openProxy({
      onUpgrade: switching((socket) =>
        socket.resume().on('end', () => {
          closed = true
        }),
      ),
    })
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET / HTTP/1.1\r\n${own}${upgrade}\r\n`)
    await once(socket, 'data')
    socket.resetAndDestroy()
    await until(() => closed && outcomes.length === 1, 10_000)
  })

  it.each([
    ['a caller', own],
    ['an unauthenticated caller', 'Host: api.test\r\n'],
  ])(
    'asked for by %s before the answer to an earlier request ends its connection, and nothing else',
    async (_who, who) => {
      const waiting: ServerResponse[] = []
      const { raw, ask, seen } = await openProxy({
        onUpgrade: echo,
        serve: (_request, response) => void waiting.push(response),
      })
      const said = await raw(`GET /slow HTTP/1.1\r\n${own}\r\nGET /ws HTTP/1.1\r\n${who}${upgrade}\r\n`)
      expect(said).not.toContain('101 Switching')
      expect(seen.map(({ url }) => url)).not.toContain('/ws')
      for (const response of waiting) response.end()
      const next = ask({ path: '/next' })
      await waitUntil(() => seen.some(({ url }) => url === '/next'), { deadlineMs: 5_000 })
      for (const response of waiting) response.end()
      expect((await next).status).toBe(200)
    },
  )

  it('does not keep the ingress from stopping', async () => {
    const { port, app, outcomes } = await openProxy({ onUpgrade: switching((socket) => socket.resume()) })
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(`GET / HTTP/1.1\r\n${own}${upgrade}\r\n`)
    await once(socket, 'data')
    await app.close()
    await until(() => outcomes.length === 1, 10_000)
    expect(outcomes).toMatchObject([{ status: 101, error: '' }])
  })

  it.each([
    'h2c',
    'h2c-14',
    'h2c-16',
    'h2',
    'HTTP/2.0',
    'spdy/3',
    'spdy/3.1',
    'TLS/1.2',
    'tls-1.2',
    'tls',
    'odd',
    'h2c, websocket',
    'websocket, h2c',
    'websocket/13',
  ])('for %s is not opened: requests inside it would not be decided', async (protocol) => {
    const { raw, seen } = await openProxy({ onUpgrade: echo })
    const said = await raw(`GET / HTTP/1.1\r\n${own}Connection: Upgrade, close\r\nUpgrade: ${protocol}\r\n\r\n`)
    expect(said).toMatch(/^HTTP\/1\.1 200 /)
    expect(seen[0]?.headers).not.toHaveProperty('upgrade')
  })
})
