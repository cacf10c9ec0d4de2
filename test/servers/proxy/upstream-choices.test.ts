import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../../support/listen.ts'
import { folderForTest } from '../../support/opened.ts'
import { createAuthority } from '../../support/servers/certificates.ts'
import { openProxy } from './open-proxy.ts'

describe('keepInPath', () => {
  const all = 'keepInPath: ["%2F", ";", "//"]'
  const key = 'Host: api.test\r\nX-API-Key: acme-key\r\nConnection: close\r\n'
  test.each([
    ['/projects/group%2fproject?a=%2F;', '/projects/group%2Fproject?a=%2F;', '*', 1],
    ['/queues/%2F/q', '/queues/%2F/q', '', 0],
    ['/queues/a%2Fb/q', '/queues/a%2Fb/q', 'GET /queues/:vhost/:name', 3],
    ['//queues///a//', '//queues///a//', 'GET /queues/:vhost', 2],
    ['/queues/a;v=1/q;w', '/queues/a;v=1/q;w', 'GET /queues/:vhost/:name', 3],
    ['/v1/search;v=1', '/v1/search;v=1', '* /v1/search', 5],
    ['/v1//search;%76=%7b%3B', '/v1//search;v=%7B%3B', '* /v1/search', 5],
    ['/x/../a;b', '', '', 0],
    ['/x/..%2Fa', '', '', 0],
    ['/x/..;/a', '', '', 0],
    ['/x//../a', '/a', '*', 1],
    ['/v1/search%2F', '/v1/search%2F', '* /v1/search', 5],
    ['//evil.test/v1/search', '//evil.test/v1/search', '* /v1/search', 5],
    ['///evil.test/v1/search;a', '///evil.test/v1/search;a', '* /v1/search', 5],
    ['//v1/search', '//v1/search', '* /v1/search', 5],
    ['//queues/queues/a', '', '', 0],
    ['/web/a', '/web/a', 'GET /web/:name', 1],
    ['/web//a', '', '', 0],
    ['/web/a%2F', '/web/a%2F', 'GET /web/:name', 1],
    ['/web/http://example.com/b', '/web/http://example.com/b', 'GET /web/*', 50],
  ])('%s is %j to the upstream and %j to the policy, or refused', async (path, forwarded, route, cost) => {
    const { raw, seen, records } = await openProxy({ upstream: all })
    const said = await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)
    if (route === '') {
      expect([said.slice(9, 12), seen, records]).toEqual(['400', [], []])
      return
    }
    expect(said).toMatch(/^HTTP\/1\.1 200 /)
    expect([seen[0]?.url, records]).toMatchObject([forwarded, [{ route, cost }]])
  })

  test.each(['"%2F"', '";"', '"//"'])('%s alone keeps nothing else', async (mark) => {
    const paths = { '"%2F"': '/a%2Fb', '";"': '/a;b', '"//"': '/a//b' }
    const { raw, seen } = await openProxy({ upstream: `keepInPath: [${mark}]` })
    for (const path of [...Object.values(paths), '/a%2Fb;c//d']) await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)
    const kept = Object.entries(paths).flatMap(([of, path]) => (of === mark ? [path] : of === '"//"' ? ['/a/b'] : []))
    expect(seen.map(({ url }) => url)).toEqual(kept)
  })

  test('A count by a parameter is one, however its parameters are written', async () => {
    const { raw, records } = await openProxy({ upstream: all })
    for (const path of ['/queues/a/q', '/queues/a/q;x', '/queues/a;y//q;z=1']) {
      await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)
    }
    const counts = records.map(({ limits }) => /"by":\{[^}]*}/.exec(JSON.stringify(limits))?.[0])
    expect([counts.length, new Set(counts).size]).toEqual([3, 1])
  })
})

describe('Location', () => {
  test.each([
    ['ORIGIN/docs/?a=1#b', '/docs/?a=1#b'],
    ['ORIGIN', '/'],
    ['ORIGIN//evil.test/', '/.//evil.test/'],
    ['ORIGIN\\evil.test', '/evil.test'],
    ['/docs/', '/docs/'],
    ['https://elsewhere.test/x', 'https://elsewhere.test/x'],
    ['http://[', 'http://['],
  ])('%s of the upstream is %s to the client', async (location, wanted) => {
    const own: { origin?: string } = {}
    const { ask, upstreamPort } = await openProxy({
      serve: (_, response) => {
        const written = location.replace('ORIGIN', own.origin ?? '')
        response.writeHead(302, { location: written, 'content-location': written }).end()
      },
    })
    own.origin = `http://127.0.0.1:${upstreamPort}`
    const { headers } = await ask()
    expect([headers.location, headers['content-location']]).toEqual([wanted, wanted])
  })

  test('is a path where it comes twice, too', async () => {
    const { raw } = await openProxy({
      serve: ({ socket }, response) => {
        const origin = `http://127.0.0.1:${socket.localPort}`
        response.writeHead(302, ['location', `${origin}/a`, 'location', `${origin}/b`]).end()
      },
    })
    const said = await raw('GET / HTTP/1.1\r\nHost: api.test\r\nX-API-Key: acme-key\r\nConnection: close\r\n\r\n')
    expect(said.match(/^location: .*$/gm)).toEqual(['location: /a', 'location: /b'])
  })
})

describe('preserveHost', () => {
  test('gives the upstream the host that the client asked for', async () => {
    const { ask, raw, seen } = await openProxy({ upstream: 'preserveHost: true' })
    await ask({ headers: { host: 'api.test:8080' } })
    await raw('GET http://127.0.0.1:99/ HTTP/1.1\r\nHost: x\r\nX-API-Key: acme-key\r\nConnection: close\r\n\r\n')
    expect(
      seen.map(({ headers, rawHeaders }) => [headers.host, rawHeaders.filter((one) => /^host$/i.test(one)).length]),
    ).toEqual([
      ['api.test:8080', 1],
      ['127.0.0.1:99', 1],
    ])
  })

  test('leaves the name of an https upstream as it is, and with it one connection for all hosts', async () => {
    const dir = await folderForTest('upstream')
    const authority = await createAuthority(dir)
    const { certFile, keyFile } = await authority.issue('upstream')
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, await readFile(authority.caFile, 'utf8')])
    onTestFinished(() => setDefaultCACertificates(before))
    const asked: unknown[] = []
    const files = { cert: await readFile(certFile), key: await readFile(keyFile) }
    const secure = createServer(files, ({ headers, socket }, response) => {
      asked.push([headers.host, (socket as TLSSocket & { readonly servername?: string }).servername])
      response.end()
    })
    let connections = 0
    secure.on('secureConnection', () => {
      connections += 1
    })
    onTestFinished(() => void secure.close())
    const port = await listen(secure)
    for (const name of ['localhost', '127.0.0.1']) {
      const { ask } = await openProxy({ upstream: `url: "https://${name}:${port}", preserveHost: true` })
      for (const host of ['api.test', '127.0.0.1']) expect((await ask({ headers: { host } })).status).toBe(200)
    }
    expect([asked, connections]).toEqual([
      [
        ['api.test', 'localhost'],
        ['127.0.0.1', 'localhost'],
        // An address is no name to ask for.
        ['api.test', false],
        ['127.0.0.1', false],
      ],
      2,
    ])
  })
})
