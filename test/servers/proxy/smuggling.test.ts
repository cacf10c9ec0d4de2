import { expect, it } from 'vitest'
import { openProxy } from './open-proxy.ts'

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

it('chunks are taken apart and put together anew: extensions and trailers of the client do not travel', async () => {
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
