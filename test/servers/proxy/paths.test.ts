import { describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openProxy } from './open-proxy.ts'

countAttempts('Paths and methods', 'a 400, or the path that was matched is the path that is forwarded')

const key = 'Host: api.test\r\nX-API-Key: acme-key\r\nConnection: close\r\n'

describe('whatever way a path is written in', () => {
  it.each([
    ['/v1/search', '/v1/search'],
    ['//v1/search', '/v1/search'],
    ['/v1//search', '/v1/search'],
    ['/./v1/search', '/v1/search'],
    ['/x/../v1/search', '/v1/search'],
    ['/x/%2e%2e/v1/search', '/v1/search'],
    ['/%2E%2e/v1/search', '/v1/search'],
    ['/v1/%73earch', '/v1/search'],
    ['/v1/%73%65%61%72%63%68', '/v1/search'],
    ['/v1/search/', '/v1/search/'],
    ['/v1/search?a=%2e%2e//;b#'.slice(0, -1), '/v1/search?a=%2e%2e//;b'],
  ])('%s costs what the route costs, and reaches the upstream as it was matched', async (path, forwarded) => {
    const { raw, seen, records } = await openProxy()
    expect(await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
    expect(records).toMatchObject([{ route: '* /v1/search', cost: 5 }])
    expect(seen.map(({ url }) => url)).toEqual([forwarded])
  })

  it('an escaped delimiter is the delimiter', async () => {
    const { raw, records } = await openProxy()
    await raw(`GET /v1/%24batch HTTP/1.1\r\n${key}\r\n`)
    expect(records).toMatchObject([{ route: 'GET /v1/$batch', cost: 9 }])
  })

  it.each([
    '/v1/search;x=1',
    '/v1;/search',
    '/v1%2Fsearch',
    '/v1%5csearch',
    '/v1\\search',
    '/v1/search%00',
    '/v1/search%3Bx',
    '/x/%252e%252e/v1/search',
    '/v1/%c0%ae/search',
    '/v1/%zz',
    '/v1/search#x',
    '/v1/search?a#x',
    'ftp://api.test/v1/search',
    'http://user@api.test/v1/search',
    'http:///v1/search',
    'api.test:443',
    '*',
  ])('%s is refused with 400, undecided and unseen by the upstream', async (path) => {
    const { raw, seen, records } = await openProxy()
    const answer = await raw(`${path === '*' ? 'OPTIONS' : 'GET'} ${path} HTTP/1.1\r\n${key}\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain('"type":"urn:weir:problem:bad-request"')
    expect([records, seen]).toEqual([[], []])
  })
})

it.each([
  ['http://api.test/v1/search', '/v1/search'],
  ['HTTP://API.test:80/v1//search?a=http://b', '/v1/search?a=http://b'],
  ['https://api.test?x=1', '/?x=1'],
  ['http://api.test', '/'],
])('the absolute form %s is its path, at the host that it names', async (url, forwarded) => {
  const { raw, seen } = await openProxy()
  const said = await raw(`GET ${url} HTTP/1.1\r\n${key.replace('api.test', 'gone.test')}\r\n`)
  expect(said).toMatch(/^HTTP\/1\.1 200 /)
  expect(seen.map(({ url, headers }) => [url, headers['x-forwarded-host']])).toEqual([
    [forwarded, /\/\/([^/?]+)/.exec(url)?.[1]],
  ])
  expect(await raw(`GET http://api.test/ HTTP/1.1\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /)
})

/**
 * What the most generous reader makes of a path: unescaped twice, without parameters, `\\` as `/`, dots and `//`
 * resolved.
 */
function laxest(path: string): string {
  const decoded = (text: string) =>
    text.replaceAll(/%u00([0-9a-f]{2})|%([0-9a-f]{2})/gi, (_, wide, hex) =>
      String.fromCharCode(Number.parseInt(wide ?? hex, 16)),
    )
  const plain = decoded(decoded(Buffer.from(path, 'latin1').toString('utf8'))).normalize('NFKC')
  const segments: string[] = []
  for (const segment of plain
    .replaceAll('\\', '/')
    .split('/')
    .map((text) => text.replace(/;.*/, ''))) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

describe.each(['', 'keepInPath: ["%2F", ";", "//"]'])(
  'a path that another server may read as a dearer route, %j',
  (upstream) => {
    const written = [
      '/.//v1/search /v1/./search /v1/x/../search /v1/search/. /v1/search/x/.. /../v1/search /../../v1/search',
      '/%2e/v1/search /v1/%2e/search /v1/x/%2e%2e/search /v1/x/.%2e/search /v1/x/%2e./search /%2e%2e%2fv1/search',
      '/v1%2fsearch /v1%2Fsearch /%2fv1/search /v1/%2fsearch /v1/x%2f..%2fsearch /v1/x/..%2fsearch /v1%5Csearch',
      '/v1;a=b/search /v1/search; /v1/x/..;/search /v1/search%3b /;/v1/search /v1%252fsearch',
      '/v1/x/%252e%252e/search /v1/%2573earch /v1/%25%37%33earch /v1%u002fsearch /%u0076%u0031/search',
      '/v1%c0%afsearch /v1%e0%80%afsearch /v1%ef%bc%8fsearch /%ef%bd%961/search /v1/%c1%b3earch /v1/search%00',
      '/v1%00/search /v1/search%0a /v1/se%61rch /v1/SEARC%48/../search /v1///search /v1/search?/../..',
      '/v1/x?/../search /x?a=/../v1/search /v1/search?? /v1/search?%00 ///v1//search //api.test/v1/search',
    ]
    it.each([
      ...written.join(' ').split(' '),
      '/\\v1/search',
      '/v1/x\\..\\search',
      '/v1/\xef\xbd\x93earch',
      '/v1/search%0d%0aX: y',
      '/v1/search;a=1/;b',
      '/v1/x;/..;/search',
      '/v1%3bx%2fsearch',
      '/v1;%2Fsearch',
      '/v1/%2F/search',
      '/v1/%2F;x/;y/search//',
    ])('%s is refused, or costs what the path that the upstream gets costs for its laxest reader', async (path) => {
      const { raw, seen, records } = await openProxy({ upstream })
      const answer = await raw(`GET ${path} HTTP/1.1\r\n${key}\r\n`)
      if (seen.length === 0) expect(answer).toMatch(/^HTTP\/1\.1 4/)
      else {
        const forwarded = seen[0]?.url.split('?')[0] ?? ''
        // To some readers `//name` is a host.
        const isSearch = [forwarded, forwarded.replace(/^\/\/[^/]*/, '')].some((one) => laxest(one) === '/v1/search')
        expect([records.length, records[0]?.cost]).toEqual([1, isSearch ? 5 : 1])
      }
    })
  },
)

describe('a method', () => {
  it.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'x_http_method_override'])(
    'is not changed by %s: the upstream never sees it',
    async (name) => {
      const { ask, seen, records } = await openProxy()
      await ask({ path: '/v1/pay', headers: { [name]: 'POST' } })
      expect(records).toMatchObject([{ route: '*', cost: 1, method: 'GET' }])
      expect(seen[0]?.method).toBe('GET')
      expect(Object.keys(seen[0]?.headers ?? {})).not.toContain(name.toLowerCase())
    },
  )

  it.each(['X-Original-URL', 'X-Rewrite-URL'])('nor is a path by %s', async (name) => {
    const { ask, seen } = await openProxy()
    await ask({ headers: { [name]: '/v1/search' } })
    expect(seen[0]?.headers).not.toHaveProperty(name.toLowerCase())
  })

  it.each(['PROPFIND', 'REPORT', 'PURGE', 'QUERY', 'DELETE', 'OPTIONS'])('%s is as good as any', async (method) => {
    const { ask, seen, records } = await openProxy()
    expect((await ask({ method, path: '/v1/search' })).status).toBe(200)
    expect([seen[0]?.method, records[0]?.method, records[0]?.cost]).toEqual([method, method, 5])
  })

  it('HEAD costs what GET costs, and CONNECT opens nothing', async () => {
    const { ask, raw, seen, records } = await openProxy()
    expect(await ask({ method: 'HEAD', path: '/v1/$batch' })).toMatchObject({ status: 200, body: '' })
    expect(records).toMatchObject([{ route: 'GET /v1/$batch', cost: 9 }])
    for (const target of ['127.0.0.1:22', '/v1/search'])
      expect(await raw(`CONNECT ${target} HTTP/1.1\r\n${key}\r\n`)).toMatch(/^HTTP\/1\.1 400 /)
    expect(seen).toHaveLength(1)
  })
})
