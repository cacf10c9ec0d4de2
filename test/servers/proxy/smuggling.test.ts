import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openProxy } from './open-proxy.ts'

countAttempts('Request framing at the proxy', 'a 4xx, or one request upstream for one decision')

const own = 'Host: api.test\r\nX-API-Key: acme-key\r\n'
const hidden = `POST /v1/pay HTTP/1.1\r\n${own}Content-Length: 0\r\n\r\n`

/** Heads that two readers could end, or read, differently. */
const refused: Readonly<Record<string, string>> = {
  'Content-Length and Transfer-Encoding': `POST / HTTP/1.1\r\n${own}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'Transfer-Encoding and Content-Length': `POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${hidden}`,
  'two different lengths': `POST / HTTP/1.1\r\n${own}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
  'two equal lengths': `POST / HTTP/1.1\r\n${own}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`,
  'a list of lengths': `POST / HTTP/1.1\r\n${own}Content-Length: 5, 5\r\n\r\nhello`,
  'a signed length': `POST / HTTP/1.1\r\n${own}Content-Length: +5\r\n\r\nhello`,
  'a negative length': `POST / HTTP/1.1\r\n${own}Content-Length: -5\r\n\r\nhello`,
  'a length in hex': `POST / HTTP/1.1\r\n${own}Content-Length: 0x5\r\n\r\nhello`,
  'a length beyond 64 bits': `POST / HTTP/1.1\r\n${own}Content-Length: 99999999999999999999\r\n\r\nhello`,
  'an empty length': `POST / HTTP/1.1\r\n${own}Content-Length:\r\n\r\nhello`,
  'chunked, but not last': `POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`,
  'an unknown coding': `POST / HTTP/1.1\r\n${own}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`,
  'a coding before chunked': `POST / HTTP/1.1\r\n${own}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'chunked twice': `POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'chunked in HTTP/1.0': `POST / HTTP/1.0\r\n${own}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'a blank before the colon': `POST / HTTP/1.1\r\n${own}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'a folded header': `POST / HTTP/1.1\r\n${own}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'a folded header of no meaning': `GET / HTTP/1.1\r\n${own}X-A: b\r\n\tc\r\n\r\n`,
  'a bare line feed after a header': `POST / HTTP/1.1\r\n${own}X-A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'a bare line feed at the end of the head': `POST / HTTP/1.1\r\n${own}Content-Length: 5\n\nhello`,
  'a bare carriage return in a header': `GET / HTTP/1.1\r\n${own}X-A: b\rX-C: d\r\n\r\n`,
  'a NUL in a header': `GET / HTTP/1.1\r\n${own}X-A: b\0c\r\n\r\n`,
  'a header without a name': `GET / HTTP/1.1\r\n${own}: b\r\n\r\n`,
  'a header without a colon': `GET / HTTP/1.1\r\n${own}X-A\r\n\r\n`,
  'a blank before the first header': `GET / HTTP/1.1\r\n X-A: b\r\n${own}\r\n`,
  'a version that is none': `GET / HTTP/1.9\r\n${own}\r\n`,
  'a tab in the request line': `GET\t/ HTTP/1.1\r\n${own}\r\n`,
  'a control character in the path': `GET /\x01 HTTP/1.1\r\n${own}\r\n`,
  'no Host': 'GET / HTTP/1.1\r\nX-API-Key: acme-key\r\n\r\n',
  'two Hosts': `GET / HTTP/1.1\r\n${own}Host: gone.test\r\n\r\n`,
  'two equal Hosts': `GET / HTTP/1.1\r\n${own}host: api.test\r\n\r\n`,
  'a Host with a path': 'GET / HTTP/1.1\r\nHost: api.test/x\r\nX-API-Key: acme-key\r\n\r\n',
  'a Host with a user': 'GET / HTTP/1.1\r\nHost: api.test@gone.test\r\nX-API-Key: acme-key\r\n\r\n',
  'an absolute form without Host': `GET http://api.test/ HTTP/1.1\r\nX-API-Key: acme-key\r\n\r\n`,
  'an absolute form with two Hosts': `GET http://api.test/ HTTP/1.1\r\n${own}Host: gone.test\r\n\r\n`,
  'an absolute form with a length and chunks': `POST http://api.test/ HTTP/1.1\r\n${own}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'HTTP/2 in clear': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'an upgrade with a body': `GET / HTTP/1.1\r\n${own}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello`,
}

it.each(Object.keys(refused))('%s: 400, and nothing of it reaches the upstream', async (name) => {
  const { raw, seen, records } = await openProxy()
  const answer = await raw(refused[name] ?? '', /HTTP\/1\.1 [\s\S]*\}/)
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
  expect(answer).toContain('content-type: application/problem+json')
  expect([seen, records]).toEqual([[], []])
})

/** Bodies that break off the request: by then it has been decided, and the upstream must not take it for whole. */
const brokenBodies: Readonly<Record<string, string>> = {
  'a chunk size that is none': 'zz\r\nhello\r\n0\r\n\r\n',
  'a signed chunk size': '+5\r\nhello\r\n0\r\n\r\n',
  'a chunk size in 0x': '0x5\r\nhello\r\n0\r\n\r\n',
  'a chunk longer than it says': `5\r\nhello, and more\r\n0\r\n\r\n${hidden}`,
  'a chunk size that ends in a bare line feed': `5\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk extension with a bare line feed': `5;a=b\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk extension that never ends': `5;${'a'.repeat(100_000)}\r\nhello\r\n0\r\n\r\n`,
  'a length among the trailers': '5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n',
  'a last chunk with a bare line feed': `5\r\nhello\r\n0\n\n${hidden}`,
}

it.each(Object.keys(brokenBodies))(
  '%s breaks the request off, and what is hidden behind it is no request',
  async (name) => {
    const whole: string[] = []
    const { raw, seen } = await openProxy({
      serve: (request, response) => {
        request.resume().on('end', () => {
          whole.push(request.url ?? '')
          response.end('made')
        })
      },
    })
    const bytes = `POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked\r\n\r\n${brokenBodies[name]}`
    expect(await raw(bytes)).toMatch(/^(?:HTTP\/1\.1 (?:400|413) |$)/)
    expect(whole).toEqual([])
    expect(seen.filter(({ url }) => url === '/v1/pay')).toEqual([])
  },
)

it('chunks are taken apart and put together again: extensions and trailers of the client do not travel', async () => {
  const bodies: string[] = []
  const { raw, seen } = await openProxy({
    serve: (request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      request.on('end', () => {
        bodies.push(`${body} ${JSON.stringify(request.rawTrailers)}`)
        response.end('made')
      })
    },
  })
  const chunks = '5;weir=1;x="y"\r\nhello\r\n00001\r\n!\r\n0\r\nX-Weir-Subject: globex\r\n\r\n'
  const head = `POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
  expect(await raw(head + chunks)).toMatch(/^HTTP\/1\.1 200 /)
  expect(bodies).toEqual(['hello! []'])
  expect(seen[0]?.headers['transfer-encoding']).toBe('chunked')
})

it('requests sent in one go are answered in their order, each decided by itself', async () => {
  const { raw, seen, records } = await openProxy()
  const one = (path: string) => `GET ${path} HTTP/1.1\r\n${own}\r\n`
  const answer = await raw(
    `${one('/v1/search')}${one('/a')}GET /b HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n`,
  )
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 401'])
  expect(records.map(({ cost }) => cost).toSorted()).toEqual([1, 1, 5])
  expect(seen).toHaveLength(2)
})

const last = `${own}Connection: close\r\n`
const post = (framing: string, body: string) => `POST / HTTP/1.1\r\n${last}${framing}\r\n\r\n${body}`
const noChunks = `0\r\n\r\n${hidden}`
const within = (method: string) => `${method} / HTTP/1.1\r\n${last}Content-Length: ${hidden.length}\r\n\r\n${hidden}`

/** Forms that a reader may take or refuse, but never for more than one request. */
const odd: Readonly<Record<string, string>> = {
  'a vertical tab behind chunked': post('Transfer-Encoding: chunked\x0b', noChunks),
  'a tab behind chunked': post('Transfer-Encoding: chunked\t', noChunks),
  'a NUL behind chunked': post('Transfer-Encoding: chunked\0', noChunks),
  'chunked in quotes': post('Transfer-Encoding: "chunked"', noChunks),
  'chunked with a parameter': post('Transfer-Encoding: chunked;q=1', noChunks),
  'an empty coding before chunked': post('Transfer-Encoding: ,chunked', noChunks),
  'an empty coding behind chunked': post('Transfer-Encoding: chunked,', noChunks),
  'an empty Transfer-Encoding': post('Transfer-Encoding:', noChunks),
  'identity and a length': post('Transfer-Encoding: identity\r\nContent-Length: 5', `hello${hidden}`),
  'chunked and a length of 0': post('Transfer-Encoding: chunked\r\nContent-Length: 0', noChunks),
  'two colons': post('Transfer-Encoding:: chunked', noChunks),
  'CHUNKED in capitals': post('TRANSFER-ENCODING: CHUNKED', noChunks),
  Transfer_Encoding: post('Transfer_Encoding: chunked', noChunks),
  Content_Length: post('Content_Length: 5', hidden),
  'Transfer-Encoding that Connection names': post(
    'Transfer-Encoding: chunked\r\nConnection: transfer-encoding',
    noChunks,
  ),
  'Content-Length that Connection names': post('Content-Length: 5\r\nConnection: content-length', `hello${hidden}`),
  'a length with a vertical tab': post('Content-Length: 5\x0b', `hello${hidden}`),
  'a length with a semicolon': post('Content-Length: 5;', `hello${hidden}`),
  'two lengths with a blank': post('Content-Length: 5 5', `hello${hidden}`),
  'a broken length': post('Content-Length: 5.0', `hello${hidden}`),
  'a length with an exponent': post('Content-Length: 1e1', `hello${hidden}`),
  'a superscript length': post('Content-Length: \xb2', `hello${hidden}`),
  'a length with zeros': post('Content-Length: 005', `hello${hidden}`),
  'a blank behind Content-Length': post('Content-Length : 5', `hello${hidden}`),
  'a NUL behind Content-Length': post('Content-Length\0: 5', `hello${hidden}`),
  'a body longer than its length': post('Content-Length: 5', `hello${hidden}`),
  'an expectation that is unknown': post('Expect: 200-ok\r\nContent-Length: 5', `hello${hidden}`),
  'an expectation twice': post('Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5', `hello${hidden}`),
  'an expectation without a body': `GET / HTTP/1.1\r\n${last}Expect: 100-continue\r\n\r\n${hidden}`,
  'HTTP/0.9': `GET /\r\n\r\n${hidden}`,
  ...Object.fromEntries(
    ['HTTP/0.9', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/3.0', 'http/1.1', 'HTTP/1.01', 'HTTP/11', 'RTSP/1.0'].map(
      (version) => [`the version ${version}`, `GET / ${version}\r\n${last}\r\n${hidden}`],
    ),
  ),
  ...Object.fromEntries(
    ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'PUT'].map((method) => [`a body on ${method}`, within(method)]),
  ),
  'two blanks before the path': `GET  / HTTP/1.1\r\n${last}\r\n${hidden}`,
  'two blanks behind the path': `GET /  HTTP/1.1\r\n${last}\r\n${hidden}`,
  'a blank in the path': `GET /a b HTTP/1.1\r\n${last}\r\n${hidden}`,
  'a bare line feed behind the request line': `GET / HTTP/1.1\n${last}\r\n${hidden}`,
  'a bare carriage return behind the request line': `GET / HTTP/1.1\r${last}\r\n${hidden}`,
  'empty lines before the request': `\r\n\r\nGET / HTTP/1.1\r\n${last}\r\n${hidden}`,
  'a method in small letters': `get / HTTP/1.1\r\n${last}\r\n${hidden}`,
  'a method that is unknown': `FOO / HTTP/1.1\r\n${last}\r\n${hidden}`,
  'a path that is an authority': `GET api.test:80 HTTP/1.1\r\n${last}\r\n${hidden}`,
  ...Object.fromEntries(
    ['', 'api.test gone.test', 'api.test, gone.test', 'api.test#x', 'api.test?x', 'api.test\\x', 'api.test\0'].map(
      (host) => [
        `the Host ${JSON.stringify(host)}`,
        `GET / HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: acme-key\r\nConnection: close\r\n\r\n${hidden}`,
      ],
    ),
  ),
  ...Object.fromEntries(
    ['http://api.test/', 'http://api.test', 'HTTP://API.test:80/', 'https://api.test/', 'http://gone.test/'].flatMap(
      (target) => [
        [`the target ${target}`, `GET ${target} HTTP/1.1\r\n${last}\r\n${hidden}`],
        [`the target ${target} in HTTP/1.0`, `GET ${target} HTTP/1.0\r\nX-API-Key: acme-key\r\n\r\n${hidden}`],
        [
          `the target ${target} with a body`,
          `POST ${target} HTTP/1.1\r\n${last}Content-Length: 5\r\n\r\nhello${hidden}`,
        ],
      ],
    ),
  ),
  ...Object.fromEntries(
    [
      'http:///v1/pay',
      'http://api.test\\v1/pay',
      'http://api.test#/v1/pay',
      'http://api.test/#',
      'http://a@api.test/',
      'http://api.test,gone.test/',
      'ftp://api.test/',
      'http:/',
      'http://',
      'http://api.test\r/',
    ].map((target) => [`the target ${JSON.stringify(target)}`, `GET ${target} HTTP/1.1\r\n${last}\r\n${hidden}`]),
  ),
  'bytes that are no request behind one': `GET / HTTP/1.1\r\n${own}\r\nno request\r\n\r\n${hidden}`,
  'an empty expectation': post('Expect:\r\nContent-Length: 5', `hello${hidden}`),
  'CONNECT with a request behind it': `CONNECT api.test:80 HTTP/1.1\r\n${own}\r\n${hidden}`,
  'CONNECT to a path with a request in its body': `CONNECT / HTTP/1.1\r\n${own}Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
  'a websocket of POST with a body and a request behind it': post(
    'Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5',
    `hello${hidden}`,
  ),
  'a websocket of HEAD with a request behind it': `HEAD / HTTP/1.1\r\n${last}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n${hidden}`,
  'a websocket with a request behind it': `GET / HTTP/1.1\r\n${own}Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n${hidden}`,
  ...Object.fromEntries(
    ['h2c', 'h2c-14', 'h2', 'HTTP/2.0', 'TLS/1.0', 'spdy/3', 'websocket, h2c'].map((protocol) => [
      `an upgrade to ${protocol} with a request behind it`,
      `GET / HTTP/1.1\r\n${own}Connection: Upgrade, close\r\nUpgrade: ${protocol}\r\n\r\nPRI * HTTP/2.0\r\n\r\n${hidden}`,
    ]),
  ),
}

it.each(Object.keys(odd))('%s: nothing reaches the upstream undecided, not even hidden behind it', async (name) => {
  const { raw, seen, records } = await openProxy()
  // `hidden` is a request of its own where the first one ends in front of it and keeps the connection; then it is
  // decided.
  const answer = await raw(odd[name] ?? '')
  const passed = answer.match(/HTTP\/1\.1 [235]\d\d/g) ?? []
  expect(seen.length).toBeLessThanOrEqual(passed.length)
  expect(seen.length).toBeLessThanOrEqual(records.length)
  expect(seen.map(({ url }) => url).filter((url) => url !== '/')).toEqual([])
})

/** Paths that an upstream with `keepInPath` gets as they came, and what could be hidden in them. */
const kept = ['/a%2F', '/a;', '/a//', '/a%2f%2F', '/a;b=%2F', '/a//;', '/http://api.test/']
it.each([
  ...kept,
  ...[
    ' HTTP/1.1',
    '%20HTTP/1.1',
    '%0d%0a',
    '%0D%0AHost:%20gone.test',
    '\r',
    '\n',
    '%00',
    '#',
    '%23',
    '%2e%2e/v1/pay',
  ].flatMap((end) => kept.slice(0, 3).map((path) => path + end)),
  '//gone.test/v1/pay',
  '/;/../v1/pay',
  '/..;/v1/pay',
  '/a/..;x/v1/pay',
  '/a%2F..%2Fv1%2Fpay',
  '/v1%2Fpay',
  '/v1;x/pay',
  '/v1//pay',
  '/\\v1//pay',
])('%j, kept in the path: one request upstream for one decision, of the route that any reader sees', async (path) => {
  const { raw, seen, records } = await openProxy({ upstream: 'keepInPath: ["%2F", ";", "//"]' })
  const answer = await raw(`POST ${path} HTTP/1.1\r\n${last}Content-Length: 0\r\n\r\n${hidden}`)
  expect(answer).toMatch(/^(?:HTTP\/1\.1 [24]\d\d |$)/)
  expect(seen.length).toBeLessThanOrEqual(Math.min(1, records.length))
  const [got] = seen
  if (got === undefined) return
  expect(got.url).toMatch(/^\/[!-~]*$/)
  const isPay = /^(?:\/\/[^/]+)?\/*v1(?:;[^/]*)?(?:\/|%2F)+pay/i.test(got.url)
  expect(records).toMatchObject([{ route: isPay ? 'POST /v1/pay' : '*', cost: isPay ? 7 : 1 }])
})

const header = 'PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n'
const binary = (length: number) =>
  `\r\n\r\n\0\r\nQUIT\n\x21\x11${String.fromCharCode(length >> 8, length & 255)}\xc0\x00\x02\x07\x0a\0\0\x01\x1f\x90\0\x50`
const plain = `GET / HTTP/1.1\r\n${last}X-Forwarded-For: 9.9.9.9\r\n\r\n`
it.each([
  ['version 1', header + plain],
  ['version 2', binary(12) + plain],
  ['version 1 twice', header + header.replace('192.0.2.7', '9.9.9.9') + plain],
  ['version 2 behind version 1', header + binary(12) + plain],
  ['version 1 behind version 2', binary(12) + header + plain],
  ['version 1 behind the request', plain + header + hidden],
  ['version 1 between two requests', header + plain.replace('Connection: close\r\n', '') + header + hidden],
  ['version 1 with a bare line feed', header.replace('\r', '') + plain],
  ['version 1 with a bare carriage return', header.replace('\n', '') + plain],
  ['version 1 with a line feed in an address', `PROXY TCP4 9.9.9.9\nX 10.0.0.1 8080 80\r\n${plain}`],
  ['version 1 with a NUL in an address', `PROXY TCP4 9.9.9.9\0 10.0.0.1 8080 80\r\n${plain}`],
  ['version 1 in small letters', header.toLowerCase() + plain],
  ['version 1 with two spaces', header.replace('TCP4 ', 'TCP4  ') + plain],
  ['version 1 that never ends', `PROXY TCP4 9.9.9.9${' '.repeat(200)}${plain}`],
  ['version 1 of another family', header.replace('TCP4', 'TCP6') + plain],
  ['version 1, unknown, with a request in it', `PROXY UNKNOWN ${hidden}${plain}`],
  ['version 2 shorter than its addresses', binary(4) + plain],
  ['version 2 that takes the request in', binary(12 + plain.length) + plain + hidden.replace('/v1/pay', '/')],
  ['version 2 longer than it may be', binary(65_535) + plain + ' '.repeat(70_000)],
  ['no header', plain],
])(
  'A header of the PROXY protocol, %s: none but the balancer names an address, and none hides a request',
  async (_, bytes) => {
    const { raw, seen, records } = await openProxy({ trusts: '127.0.0.1', identity: '{ trustedProxies: [127.0.0.1] }' })
    await raw(bytes, /HTTP\/1\.1 (?:4\d\d|200)[\s\S]*(?:\}|made)$/)
    expect(seen.length).toBe(records.length)
    expect(seen.map(({ url }) => url).filter((url) => url !== '/')).toEqual([])
    for (const { headers } of seen) expect(headers['x-forwarded-for']).toMatch(/^(?:192\.0\.2\.7|127\.0\.0\.1)$/)
  },
)

const get = `GET / HTTP/1.1\r\n${own}\r\n`
it.each([
  ['what is no request', `${get}${get}no request\r\n\r\n`, [200, 200, 400]],
  ['a body that breaks off', `${get}POST / HTTP/1.1\r\n${own}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, [200, 400]],
  ['a head that is too long', `${get}GET / HTTP/1.1\r\n${own}X: ${'a'.repeat(40_000)}\r\n\r\n`, [200, 431]],
])('%s is answered behind the whole requests before it, and nothing behind it is read', async (_, bytes, statuses) => {
  const held = Promise.withResolvers<void>()
  const { port, seen, records } = await openProxy({
    serve: (_request, response) => void held.promise.then(() => response.end('made')),
  })
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  await expect.poll(() => seen.length).toBe(1)
  await new Promise<unknown>((written) => socket.write(hidden, written))
  for (let turn = 0; turn < 10; turn += 1) await new Promise((read) => setImmediate(read))
  held.resolve()
  const answer = await text(socket)
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(statuses.map((status) => `HTTP/1.1 ${status}`))
  expect(seen.map(({ url }) => url)).toEqual(Array(statuses.length - 1).fill('/'))
  expect(records).toHaveLength(seen.length)
})

it('of fifty requests in one go each is decided, and each reaches the upstream once', async () => {
  const { raw, seen, records } = await openProxy()
  const many = Array.from({ length: 49 }, (_, n) => `GET /${n} HTTP/1.1\r\n${own}\r\n`).join('')
  const answer = await raw(`${many}GET /49 HTTP/1.1\r\n${last}\r\n`)
  expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(50)
  expect(records).toHaveLength(50)
  expect(seen.map(({ url }) => url).toSorted()).toEqual(Array.from({ length: 50 }, (_, n) => `/${n}`).toSorted())
})
