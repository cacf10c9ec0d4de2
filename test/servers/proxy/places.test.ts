import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../support/until.ts'
import { openProxy } from './open-proxy.ts'

const identity =
  '{ trustedHeaders: { from: [127.0.0.0/8], subject: x-user, plan: free }, trustedProxies: [127.0.0.0/8], anonymous: free }'
const small = { connectionsMax: 16, waitingMax: 16 }
const patientMs = 20_000

/** Holds a place of its upstream for the caller that the header names. */
type Hold = (port: number, who: string) => Socket

function open(port: number, text: string): Socket {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).write(text)
  return socket
}

const upload: Hold = (port, who) =>
  open(port, `POST /upload HTTP/1.1\r\nHost: api.test\r\n${who}\r\nContent-Length: 1000\r\n\r\na`)

const download: Hold = (port, who) => open(port, `GET /big HTTP/1.1\r\nHost: api.test\r\n${who}\r\n\r\n`).pause()

const webSocket: Hold = (port, who) =>
  open(port, `GET /ws HTTP/1.1\r\nHost: api.test\r\n${who}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)

async function openSmall(bounds = {}, timeout = '60s') {
  const received: (string | undefined)[] = []
  const proxy = await openProxy({
    identity,
    timeout,
    upstreamBounds: { ...small, ...bounds },
    serve: (request, response) => {
      received.push(request.url)
      if (request.url === '/big') response.end(Buffer.alloc(50_000_000))
      else request.resume().on('end', () => response.end('made'))
    },
    onUpgrade: ({ url }, socket) => {
      received.push(url)
      socket
        .on('error', () => undefined)
        .on('end', () => socket.end())
        .resume()
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    },
  })
  const ask = (who: Record<string, string>) =>
    proxy.ask({ method: 'POST', body: 'x', headers: { 'x-api-key': '', ...who } })
  return { ...proxy, received, ask }
}

describe('the places of an upstream', () => {
  it.each([
    ['uploads that never end', upload],
    ['answers that are not read', download],
    ['WebSockets', webSocket],
  ])('%s of one subject take at most half of them: other subjects are served immediately', async (_, hold) => {
    const { port, ask, records, outcomes, received } = await openSmall()
    for (let n = 0; n < 40; n += 1) hold(port, 'X-User: greedy')
    await until(() => records.length === 40 && outcomes.length === 24, patientMs)
    expect(outcomes.every(({ subject, error }) => subject === 'greedy' && error === 'busy')).toBe(true)
    expect(received).toHaveLength(8)
    for (let n = 0; n < 12; n += 1) {
      expect(await ask({ 'x-user': 'other' })).toMatchObject({ status: 200 })
    }
    expect(await ask({ 'x-user': 'greedy' })).toMatchObject({ status: 503 })
  })

  it('are not all taken by a few subjects together, nor by the networks of one IPv6 customer', async () => {
    const { port, ask, records } = await openSmall()
    for (let n = 0; n < 60; n += 1) upload(port, `X-User: greedy${n % 3}`)
    for (let n = 0; n < 60; n += 1) upload(port, `X-Forwarded-For: 2001:db8:7:${n.toString(16)}::1`)
    await until(() => records.length === 120, patientMs)
    const others = ['2001:db8:8::1', '192.0.2.7'].map((from) => ({ 'x-forwarded-for': from }))
    for (const headers of [...others, { 'x-user': 'other' }]) {
      expect(await ask(headers)).toMatchObject({ status: 200 })
    }
  })

  it('may all be of one subject where the configuration says so', async () => {
    const { port, records, outcomes, received } = await openSmall({ subjectShare: 1 })
    for (let n = 0; n < 32; n += 1) upload(port, 'X-User: only')
    await until(() => records.length === 32 && received.length === 16, patientMs)
    expect(outcomes).toEqual([])
  })

  it('come to those that wait as others leave, and with 503 to those that waited for as long as the upstream may take', async () => {
    const { port, outcomes, received } = await openSmall({ connectionsMax: 1, waitingMax: 2 }, '500ms')
    const first = webSocket(port, 'X-User: a')
    await until(() => received.length === 1, patientMs)
    const late = open(port, 'GET /late HTTP/1.1\r\nHost: api.test\r\nX-User: b\r\n\r\n')
    expect(`${await once(late, 'data')}`).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n[\s\S]*upstream-busy/)
    const next = open(port, 'GET /next HTTP/1.1\r\nHost: api.test\r\nX-User: c\r\n\r\n')
    first.destroy()
    expect(`${await once(next, 'data')}`).toMatch(/^HTTP\/1\.1 200 /)
    expect(received).toEqual(['/ws', '/next'])
    expect(outcomes.find(({ subject }) => subject === 'b')).toMatchObject({ status: 503, error: 'busy' })
  })
})

describe('a body', () => {
  it('takes no place before it begins to come, and is then passed on whole', async () => {
    const { port, ask, records, received, seen } = await openSmall({ connectionsMax: 1, waitingMax: 1 })
    const head = 'POST /upload HTTP/1.1\r\nHost: api.test\r\nX-User: a\r\nContent-Length: 5\r\n\r\n'
    const first = open(port, head)
    for (let n = 0; n < 19; n += 1) open(port, head)
    await until(() => records.length === 20, patientMs)
    expect(await ask({ 'x-user': 'b' })).toMatchObject({ status: 200 })
    expect(received).toHaveLength(1)
    first.write('hello')
    expect(`${await once(first, 'data')}`).toMatch(/^HTTP\/1\.1 200 /)
    expect(seen[1]?.headers['content-length']).toBe('5')
  })

  it('that comes slower than its least rate is given up with 408, and its place is free', async () => {
    const { port, outcomes, upstreamSockets } = await openSmall({ bodyRateMin: 200, rateEveryMs: 250 })
    const slow = open(
      port,
      'POST /slow HTTP/1.1\r\nHost: api.test\r\nX-User: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n',
    )
    const dripping = setInterval(() => slow.write('1\r\na\r\n'), 50)
    const fast = open(
      port,
      'POST /fast HTTP/1.1\r\nHost: api.test\r\nX-User: b\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    const flowing = setInterval(() => fast.write(`40\r\n${'b'.repeat(64)}\r\n`), 50)
    const [said] = await once(slow, 'data')
    clearInterval(dripping)
    expect(`${said}`).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*too slowly/i)
    expect(outcomes).toMatchObject([{ subject: 'a', status: 408, error: 'client_gone' }])
    const left = () => [...upstreamSockets].filter(({ destroyed }) => !destroyed).length
    await until(() => left() === 1, patientMs)
    clearInterval(flowing)
    fast.write('0\r\n\r\n')
    expect(`${await once(fast, 'data')}`).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('that the upstream does not read is never the fault of its client', async () => {
    const { promise: mayRead, resolve: read } = Promise.withResolvers<void>()
    const { ask, port } = await openProxy({
      identity,
      upstreamBounds: { bodyRateMin: 1_000_000, rateEveryMs: 100 },
      serve: (request, response) => void mayRead.then(() => request.resume().on('end', () => response.end('made'))),
    })
    const answer = ask({ method: 'POST', body: Buffer.alloc(20_000_000) })
    // Several looks after the upload has begun.
    for (let n = 0; n < 3; n += 1) expect(`${await once(upload(port, 'X-User: slow'), 'data')}`).toMatch(/ 408 /)
    read()
    expect(await answer).toMatchObject({ status: 200 })
  })
})

it('bodies that say a cost and never end, of one subject, leave places for those of others, and are no more than there are places', async () => {
  const { port, ask, records } = await openProxy({ identity, upstreamBounds: small })
  const refused: string[] = []
  const held = Array.from({ length: 40 }, () =>
    open(port, 'POST /v1/bulk HTTP/1.1\r\nHost: api.test\r\nX-User: greedy\r\nContent-Length: 1000\r\n\r\n{').on(
      'data',
      (answer: Buffer) => refused.push(answer.toString()),
    ),
  )
  const bulk = (user: string) =>
    ask({ method: 'POST', path: '/v1/bulk', body: '{"domains":[1]}', headers: { 'x-api-key': '', 'x-user': user } })
  await until(() => refused.length === 24, patientMs)
  for (const answer of refused) expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n[\s\S]*upstream-busy/)
  expect([(await bulk('greedy')).status, (await bulk('modest')).status]).toEqual([503, 200])
  expect(records).toMatchObject([{ subject: 'modest', cost: 1 }])
  for (const socket of held) socket.destroy()
  const isFree = async () => (await bulk('greedy')).status === 200
  await until(isFree, patientMs)
})

it('a body that is read before its decision, and takes too long however steadily it comes, gets 408, and its place is free', async () => {
  const one = { connectionsMax: 1, waitingMax: 0, readMsMax: 600 }
  const { port, ask, records } = await openProxy({ identity, upstreamBounds: one })
  const head = 'POST /v1/bulk HTTP/1.1\r\nHost: api.test\r\nX-User: a\r\nTransfer-Encoding: chunked\r\n'
  const bulk = () => ask({ method: 'POST', path: '/v1/bulk', body: '{"domains":[1]}' })
  for (const expects of ['', 'Expect: 100-continue\r\n']) {
    const slow = open(port, `${head}${expects}\r\n1\r\n{\r\n`)
    const dripping = setInterval(() => slow.write('1\r\n \r\n'), 20)
    let said = ''
    slow.setEncoding('latin1').on('data', (text: string) => {
      said += text
    })
    await until(async () => (await bulk()).status === 503, patientMs)
    await once(slow, 'close')
    clearInterval(dripping)
    expect(said).toMatch(/HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*took too long/i)
    expect(said.match(/connection: close/gi)).toHaveLength(1)
    expect((await bulk()).status).toBe(200)
  }
  expect(records.every(({ subject }) => subject === 'acme')).toBe(true)
})
