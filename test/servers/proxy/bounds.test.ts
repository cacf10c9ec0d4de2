import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../support/until.ts'
import { openProxy } from './open-proxy.ts'

const own = 'Host: api.test\r\nX-API-Key: acme-key\r\n'

describe('headers', () => {
  it('of 64 kB get 431 and reach no upstream; of 30 kB they pass', async () => {
    const { raw, seen, records } = await openProxy()
    const withHeader = (bytes: number) =>
      `GET / HTTP/1.1\r\n${own}Connection: close\r\nX-Big: ${'a'.repeat(bytes)}\r\n\r\n`
    const refused = await raw(withHeader(65_536))
    expect(refused).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/)
    expect(refused).toContain('urn:weir:problem:headers-too-large')
    expect([seen, records]).toEqual([[], []])
    expect(await raw(withHeader(30_000))).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('of more than 200 get 431, and none is dropped in silence', async () => {
    const { raw, seen } = await openProxy()
    const some = (many: number) => Array.from({ length: many }, (_, n) => `a${n}: b\r\n`).join('')
    const ask = (many: number) => raw(`GET / HTTP/1.1\r\n${some(many)}${own}Connection: close\r\n\r\n`)
    expect(await ask(2_500)).toMatch(/^HTTP\/1\.1 431 /)
    expect(await ask(198)).toMatch(/^HTTP\/1\.1 431 /)
    expect(await ask(197)).toMatch(/^HTTP\/1\.1 200 /)
    expect(Object.keys(seen[0]?.headers ?? {}).filter((name) => /^a\d+$/.test(name))).toHaveLength(197)
  })

  it('that come a byte at a time are cut off with 408, however steadily they come', async () => {
    const { port, records } = await openProxy({ bounds: { headTimeoutMs: 600, checkEveryMs: 100 } })
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    let said = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      said += chunk
    })
    socket.on('error', () => undefined).write(`GET / HTTP/1.1\r\n${own}`)
    const dripping = setInterval(() => socket.write('X-A: b\r\n'), 20)
    await once(socket, 'close')
    clearInterval(dripping)
    expect(said).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    expect(records).toEqual([])
  })

  it('that do not come whole behind a request are cut off with 408 after its answer', async () => {
    const held: { end(body: string): void }[] = []
    const serve = (_: unknown, response: { end(body: string): void }) => void held.push(response)
    const { raw, app, outcomes } = await openProxy({ bounds: { headTimeoutMs: 200, checkEveryMs: 50 }, serve })
    app.server.once('clientError', () => held[0]?.end('made'))
    const said = await raw(`GET / HTTP/1.1\r\n${own}\r\nGET / HT`)
    expect(said).toMatch(/^HTTP\/1\.1 200 [\s\S]*madeHTTP\/1\.1 408 /)
    expect(outcomes).toMatchObject([{ status: 200, error: '' }])
  })

  it('that never begin do not hold a connection either', async () => {
    const { port } = await openProxy({ bounds: { headTimeoutMs: 300, checkEveryMs: 100, silentMsMax: 1_000 } })
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket.resume(), 'close')
    expect(socket.bytesWritten).toBe(0)
  })
})

describe('a body', () => {
  it('that stops coming is given up with 408, and the upstream is released', async () => {
    const { raw, upstreamSockets, outcomes } = await openProxy({ bounds: { silentMsMax: 300 } })
    const answer = await raw(`POST / HTTP/1.1\r\n${own}Content-Length: 10\r\n\r\nhello`)
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(outcomes).toMatchObject([{ status: 408, error: 'client_gone', bytes_in: 5 }])
    await until(() => [...upstreamSockets].every(({ destroyed }) => destroyed), 10_000)
  })

  it('that keeps coming may take longer than any timeout', async () => {
    const { port, outcomes } = await openProxy({
      bounds: { silentMsMax: 400, headTimeoutMs: 300, checkEveryMs: 50 },
      timeout: '1s',
    })
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    let said = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      said += chunk
    })
    socket.write(`POST / HTTP/1.1\r\n${own}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n`)
    let sent = 0
    const dripping = setInterval(() => {
      sent += 1
      socket.write(sent === 40 ? '0\r\n\r\n' : '1\r\na\r\n')
      if (sent === 40) clearInterval(dripping)
    }, 50)
    await once(socket, 'close')
    expect(said).toMatch(/^HTTP\/1\.1 200 /)
    expect(outcomes).toMatchObject([{ status: 200, bytes_in: 39, error: '' }])
  })

  it('that the upstream does not read is never the fault of the client', async () => {
    const { ask, outcomes } = await openProxy({
      bounds: { silentMsMax: 700 },
      timeout: '1500ms',
      serve: () => undefined,
    })
    const answer = await ask({ method: 'POST', body: Buffer.alloc(20_000_000) }).catch(() => undefined)
    expect(outcomes).toMatchObject([{ status: 504, error: 'timeout' }])
    expect(answer?.status ?? 504).toBe(504)
  })

  it('that must be read for its cost and stops coming ends its connection', async () => {
    const { raw, records } = await openProxy({ bounds: { silentMsMax: 300 } })
    expect(await raw(`POST /v1/bulk HTTP/1.1\r\n${own}Content-Length: 10\r\n\r\n{"a"`)).toBe('')
    expect(records).toEqual([])
  })
})

describe('an answer', () => {
  it('that the client does not read is given up, and the upstream is released', async () => {
    const { port, upstreamSockets, outcomes } = await openProxy({
      bounds: { silentMsMax: 300 },
      serve: (_request, response) => void response.end(Buffer.alloc(50_000_000)),
    })
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).write(`GET / HTTP/1.1\r\n${own}\r\n`)
    await until(() => outcomes.length === 1, 20_000)
    expect(outcomes).toMatchObject([{ status: 200, error: 'client_gone' }])
    await until(() => [...upstreamSockets].every(({ destroyed }) => destroyed), 10_000)
  })
})

describe('requests sent in one go', () => {
  const both = `GET /never HTTP/1.1\r\n${own}\r\nGET /big HTTP/1.1\r\n${own}\r\n`

  it('release the upstream when their client hangs up, and those that still wait are neither decided nor served', async () => {
    const { port, upstreamSockets, outcomes, records, seen } = await openProxy({ serve: () => undefined })
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined).write(both)
    await until(() => upstreamSockets.size === 1, 10_000)
    socket.destroy()
    await until(() => [...upstreamSockets].every(({ destroyed }) => destroyed), 10_000)
    expect(outcomes).toMatchObject([{ error: 'client_gone' }])
    expect([records.length, seen.map(({ url }) => url)]).toEqual([1, ['/never']])
  })
})

describe('an upstream', () => {
  it('that does not answer within its own timeout gives 504', async () => {
    const { ask, outcomes } = await openProxy({ timeout: '200ms', serve: () => undefined })
    const answer = await ask()
    expect([answer.status, JSON.parse(answer.body).type]).toEqual([504, 'urn:weir:problem:upstream-timeout'])
    expect(JSON.parse(answer.body).detail).toContain('0.2 s')
    expect(answer.headers).toHaveProperty('weir-decision')
    expect(outcomes).toMatchObject([{ status: 504, error: 'timeout', upstream: 'here' }])
  })

  it('that stops in the middle of its answer cuts the answer off, so that no client takes it for whole', async () => {
    const { raw, outcomes } = await openProxy({
      timeout: '200ms',
      serve: (_request, response) => void response.writeHead(200, { 'content-length': '10' }).write('half'),
    })
    expect(await raw(`GET / HTTP/1.1\r\n${own}\r\n`)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nhalf$/)
    expect(outcomes).toMatchObject([{ status: 200, error: 'timeout', bytes_out: 4 }])
  })

  it('that hangs up in the middle of a chunked answer cuts it off without a last chunk', async () => {
    const { raw, outcomes } = await openProxy({
      serve: (_request, response) => void response.write('half', () => response.destroy()),
    })
    const said = await raw(`GET / HTTP/1.1\r\n${own}\r\n`)
    expect(said).toMatch(/half\r\n$/)
    expect(outcomes).toMatchObject([{ status: 200, error: 'broken_off' }])
  })

  it.each([
    ['nobody listens', 'gone.test', undefined],
    ['it hangs up at once', 'api.test', 'hang up'],
    ['it answers what is no HTTP', 'api.test', 'nonsense'],
    ['its headers never end', 'api.test', 'headers'],
  ])('gives 502 when %s', async (_, host, how) => {
    const { ask, outcomes } = await openProxy({
      serve: ({ socket }) => {
        if (how === 'nonsense') socket.end('220 mail.test ESMTP\r\n')
        else if (how === 'headers') socket.end(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`)
        else socket.destroy()
      },
    })
    const answer = await ask({ headers: { host } })
    expect([answer.status, answer.headers['content-type']]).toEqual([502, 'application/problem+json'])
    expect(answer.headers).toHaveProperty('ratelimit')
    expect(outcomes).toMatchObject([{ status: 502, error: 'unreachable' }])
  })

  it('that has 2,048 requests with it or waiting gives 503 and a Retry-After to the next, until one of those that wait hangs up', async () => {
    const { ask, port, records, outcomes, seen } = await openProxy({
      serve: () => undefined,
      timeout: '60s',
      identity: '{ trustedHeaders: { from: [127.0.0.0/8], subject: x-user, plan: free } }',
    })
    const send = (user: string) => {
      const socket = connect(port, '127.0.0.1')
      onTestFinished(() => void socket.destroy())
      const head = `GET /${user} HTTP/1.1\r\nHost: api.test\r\nX-User: ${user}\r\n\r\n`
      socket.on('error', () => undefined).write(head)
      return { url: `/${user}`, socket }
    }
    const sent: ReturnType<typeof send>[] = []
    // Some at a time: on a busy machine 2,048 handshakes at once (over-tls.test.ts) outlast the listener's patience.
    while (sent.length < 2_048) {
      for (let n = 0; n < 128; n += 1) sent.push(send(`u${sent.length}`))
      await until(() => records.length === sent.length, 60_000)
    }
    await until(() => seen.length === 1_024, 60_000)
    expect(await ask()).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    expect(outcomes).toMatchObject([{ status: 503, error: 'busy' }])
    const withIt = new Set(seen.map(({ url }) => url))
    const [waiting, ...others] = sent.filter(({ url }) => !withIt.has(url))
    expect(others).toHaveLength(1_023)
    waiting?.socket.destroy()
    await until(() => outcomes.length === 2, 60_000)
    const { socket } = send('next')
    await until(() => records.length === 2_050, 60_000)
    expect((await ask()).status).toBe(503)
    socket.destroy()
    await until(() => outcomes.length === 4, 60_000)
    expect(outcomes[3]).toMatchObject({ subject: 'next', error: 'client_gone' })
  })
})
