import { rateLimitDialects } from '@weir/core/limits/rate-limit-headers.ts'
import { describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openProxy } from './open-proxy.ts'

describe('what the upstream gets', () => {
  it('is who calls, by which decision, from where, and under which name', async () => {
    const { ask, seen, port } = await openProxy()
    const answer = await ask({ headers: { host: `api.test:${port}`, 'user-agent': 'test' } })
    expect(seen[0]?.headers).toMatchObject({
      'x-weir-subject': 'acme',
      'x-weir-plan': 'free',
      'x-weir-key-id': 'k1',
      'weir-decision': answer.headers['weir-decision'],
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': `api.test:${port}`,
      'x-forwarded-proto': 'http',
      forwarded: `for=127.0.0.1;host="api.test:${port}";proto=http`,
      via: '1.1 weir',
      'user-agent': 'test',
    })
    expect(seen[0]?.headers.host).toMatch(/^127\.0\.0\.1:\d+$/)
  })

  it('is not taken away by Connection: x-weir-subject', async () => {
    const { ask, seen } = await openProxy()
    const names = 'x-weir-subject, X-Forwarded-For, weir-decision, forwarded, x-once, X_Thrice'
    await ask({ headers: { connection: `close, ${names}`, 'x-once': 'a', x_thrice: 'a', 'x-twice': 'b' } })
    expect(seen[0]?.headers).toMatchObject({ 'x-weir-subject': 'acme', 'x-forwarded-for': '127.0.0.1', 'x-twice': 'b' })
    expect(seen[0]?.headers).toHaveProperty('weir-decision')
    for (const name of ['x-once', 'x_thrice']) expect(seen[0]?.headers).not.toHaveProperty(name)
  })

  it('is nothing that belongs to one connection, and not the key', async () => {
    const { ask, seen } = await openProxy()
    await ask({
      headers: {
        'keep-alive': 'timeout=9',
        'proxy-connection': 'keep-alive',
        te: 'gzip',
        'proxy-authorization': 'Basic x',
        'accept-encoding': 'br',
        cookie: ['a=1', 'b=2'],
        authorization: 'Basic eDp5',
      },
    })
    const got = seen[0]?.headers ?? {}
    for (const name of ['keep-alive', 'proxy-connection', 'te', 'proxy-authorization', 'x-api-key']) {
      expect(got).not.toHaveProperty(name)
    }
    expect(got).toMatchObject({ 'accept-encoding': 'br', cookie: 'a=1; b=2', authorization: 'Basic eDp5' })
  })

  it('is what a trusted proxy says, with that proxy added', async () => {
    const { ask, seen } = await openProxy({ identity: '{ trustedProxies: [127.0.0.1] }' })
    await ask({
      headers: {
        'x-forwarded-for': '198.51.100.7',
        'x-forwarded-host': 'shop.test',
        'x-forwarded-proto': 'https',
        forwarded: 'for=198.51.100.7;proto=https',
        'x-forwarded-prefix': '/api',
      },
    })
    expect(seen[0]?.headers).toMatchObject({
      'x-forwarded-for': '198.51.100.7, 127.0.0.1',
      'x-forwarded-host': 'shop.test',
      'x-forwarded-proto': 'https',
      'x-forwarded-prefix': '/api',
      forwarded: 'for=198.51.100.7;host="shop.test";proto=https, for=127.0.0.1;host="api.test";proto=http',
    })
  })

  const xFor = 'x-forwarded-for'
  const [xHost, xPort] = ['x-forwarded-host', 'x-forwarded-port']
  const viaTwo = 'for=6.6.6.6;proto=http;host=evil.test, For="198.51.100.7:99";Proto=HTTPS;Host="a.test", for=10.1.1.1'
  it.each<[Record<string, string>, string, string, string, string]>([
    [{ 'x-forwarded-proto': 'https' }, 'for=unknown;proto=https', '', 'api.test', 'https'],
    [{ [xFor]: '192.0.2.7, 10.1.1.1' }, 'for=192.0.2.7, for=10.1.1.1', '192.0.2.7, 10.1.1.1, ', 'api.test', 'http'],
    [{ 'x-forwarded-proto': 'wss' }, 'for=unknown;proto=wss', '', 'api.test', 'wss'],
    // The upstream is told the address that Weir counts by.
    [
      { 'x-forwarded-proto': 'https', forwarded: 'for=192.0.2.7;proto=http' },
      'for=192.0.2.7;proto=https',
      '192.0.2.7, ',
      'api.test',
      'https',
    ],
    [{ [xFor]: '192.0.2.7', forwarded: 'for=6.6.6.6;proto=https' }, 'for=192.0.2.7', '192.0.2.7, ', 'api.test', 'http'],
    [
      { [xFor]: '2001:db8::1', 'x-forwarded-proto': 'https, http', [xHost]: 'a.test', [xPort]: '8443' },
      'for="[2001:db8::1]";host="a.test:8443";proto=https',
      '2001:db8::1, ',
      'a.test:8443',
      'https',
    ],
    [
      { forwarded: viaTwo },
      'for=6.6.6.6;host="a.test";proto=https, for=198.51.100.7, for=10.1.1.1',
      '6.6.6.6, 198.51.100.7, 10.1.1.1, ',
      'a.test',
      'https',
    ],
    [{ forwarded: 'for=_hidden;proto=gopher;host="a b"' }, 'for=unknown', 'unknown, ', 'api.test', 'http'],
  ])('%j of a trusted proxy is one truth in both spellings', async (headers, forwarded, addresses, host, proto) => {
    const { ask, seen } = await openProxy({ identity: '{ trustedProxies: [127.0.0.1, 10.0.0.0/8] }' })
    await ask({ headers })
    expect(seen[0]?.headers).toMatchObject({
      'x-forwarded-for': `${addresses}127.0.0.1`,
      'x-forwarded-host': host,
      'x-forwarded-proto': proto,
      forwarded: `${forwarded}, for=127.0.0.1;host="api.test";proto=http`,
    })
  })

  it('is nothing of the headers by which trusted proxies name subjects', async () => {
    const identity = '{ trustedHeaders: { from: [10.0.0.0/8], subject: X-User, planHeader: X-User-Plan, plan: free } }'
    const { ask, seen } = await openProxy({ identity })
    await ask({ headers: { 'x-user': 'globex', 'x-user-plan': 'top', 'x-users': 'fine' } })
    expect(seen[0]?.headers).not.toHaveProperty('x-user')
    expect(seen[0]?.headers).not.toHaveProperty('x-user-plan')
    expect(seen[0]?.headers).toHaveProperty('x-users')
  })

  it('is no credential in a header that the policy writes with _', async () => {
    const identity =
      '{ keyHeaders: [api_key], trustedHeaders: { from: [10.0.0.0/8], subject: x_user, planHeader: x_user_plan, plan: free } }'
    const { ask, seen } = await openProxy({ identity })
    const headers = { 'x-api-key': 'fine', x_user: 'globex', x_user_plan: 'top', 'x-user': 'globex' }
    expect((await ask({ headers: { ...headers, api_key: 'acme-key' } })).status).toBe(200)
    expect(JSON.stringify(seen[0]?.rawHeaders)).not.toMatch(/acme-key|globex|top/)
  })

  it('has a query without the key, where the policy allows keys there, and letter for letter the rest', async () => {
    const { ask, seen } = await openProxy({ identity: '{ keyQuery: api_key }' })
    const headers = { 'x-api-key': '' }
    await ask({ path: '/a?b=%7e+c&api%5Fkey=acme-key&d', headers })
    await ask({ path: '/a?api_key=acme-key', headers })
    await ask({ path: '/a?api_key=acme-key&x=%2e%2e', headers })
    expect(seen.map(({ url }) => url)).toEqual(['/a?b=%7e+c&d', '/a', '/a?x=%2e%2e'])
  })
})

describe('what the client gets', () => {
  it('is what the upstream says, except about its connection and in the name of Weir', async () => {
    const { ask } = await openProxy({
      serve: (_request, response) =>
        void response
          .writeHead(207, [
            'Set-Cookie',
            'a=1',
            'Set-Cookie',
            'b=2',
            'X-Once',
            'a',
            'Connection',
            'X-Once',
            'Proxy-Authenticate',
            'x',
            'RateLimit',
            '"forged";r=9',
            'Weir-Decision',
            'forged',
            'X-Weir-Subject',
            'forged',
            'Date',
            'then',
            'RateLimit-Remaining',
            '9',
            'Content-Type',
            'text/x-odd',
            'Retry-After',
            '7',
            'X-Latin',
            'caf\xe9',
          ])
          .end('said'),
    })
    const { status, headers, body } = await ask()
    expect([status, body]).toEqual([207, 'said'])
    expect(headers).toMatchObject({
      'set-cookie': ['a=1', 'b=2'],
      'content-type': 'text/x-odd',
      'retry-after': '7',
      date: 'then',
      'x-latin': 'caf\xe9',
      ratelimit: expect.stringMatching(/^"many";r=99999;t=\d+$/),
    })
    for (const name of ['x-once', 'proxy-authenticate', 'x-weir-subject', 'ratelimit-remaining']) {
      expect(headers).not.toHaveProperty(name)
    }
    expect(JSON.stringify(headers)).not.toContain('forged')
  })

  it.each(rateLimitDialects)(
    'is the limits of Weir alone, in %s, whatever the upstream says of its own',
    async (dialect) => {
      const names = [
        'RateLimit',
        ...['Policy', 'Limit', 'Remaining', 'Reset', 'Other'].map((word) => `RateLimit-${word}`),
      ]
      const forged = [...names, ...names.map((name) => `X-${name}`)]
      const { ask } = await openProxy({
        dialect,
        serve: (_request, response) => {
          response.writeHead(200, [
            ...forged.flatMap((name) => [name, '987']),
            'Trailer',
            forged.join(', '),
            'X-Rate',
            '1',
          ])
          response.write('said')
          response.addTrailers(forged.map((name): [string, string] => [name, '987']))
          response.end()
        },
      })
      const { headers, trailers } = await ask()
      const told = Object.keys(headers).filter((name) => /^(x-)?ratelimit/.test(name))
      const words = ['limit', 'remaining', 'reset']
      const own = {
        draft10: ['ratelimit', 'ratelimit-policy'],
        draft6: [...words.map((word) => `ratelimit-${word}`), 'ratelimit-policy'],
        'x-ratelimit': words.map((word) => `x-ratelimit-${word}`),
      }
      expect(told.toSorted()).toEqual(own[dialect].toSorted())
      expect(told.map((name) => headers[name])).not.toContain('987')
      expect([trailers, headers['x-rate']]).toEqual([{}, '1'])
      if (dialect === 'draft6')
        expect(headers).toMatchObject({ 'ratelimit-limit': '100000', 'ratelimit-policy': '100000;w=60' })
      if (dialect === 'x-ratelimit') expect(headers['x-ratelimit-remaining']).toBe('99999')
    },
  )
})

describe('a header that only Weir or a trusted proxy may set', () => {
  countAttempts('Forged headers at the proxy', 'no forged header reaches the upstream')
  const forged = [
    'X-Weir-Subject X-Weir-Plan X-Weir-Key-Id X-Weir-Anything Weir-Decision Weir-Degraded X-Forwarded-For',
    'X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Port X-Forwarded-Prefix Forwarded X-Forwarded-Server',
    'X-Real-IP X-Client-IP True-Client-IP Proxy-Authorization X-HTTP-Method-Override X-HTTP-Method',
    'X-Method-Override X-Original-URL X-Rewrite-URL',
  ].flatMap((names) => names.split(' '))
  const forms: Readonly<Record<string, (name: string) => Record<string, string | string[]>>> = {
    plainly: (name) => ({ [name]: 'forged' }),
    'in capitals': (name) => ({ [name.toUpperCase()]: 'forged' }),
    'with _': (name) => ({ [name.replaceAll('-', '_')]: 'forged' }),
    'with one _': (name) => ({ [name.replace('-', '_')]: 'forged' }),
    twice: (name) => ({ [name]: ['forged', 'forged'] }),
    'named by Connection': (name) => ({ [name]: 'forged', connection: `close, ${name}` }),
  }
  const all = forged.flatMap((name) => Object.keys(forms).map((form) => [name, form] as const))

  it.each(all)('%s, sent %s, does not reach the upstream as sent', async (name, form) => {
    const { ask, seen } = await openProxy()
    const { status } = await ask({ headers: { connection: 'close', ...forms[form]?.(name) } })
    expect([status, seen.length]).toEqual([200, 1])
    expect(JSON.stringify(seen[0]?.rawHeaders)).not.toContain('forged')
    expect(seen[0]?.headers).toMatchObject({ 'x-weir-subject': 'acme', 'x-forwarded-for': '127.0.0.1' })
  })

  it.each(['x-api-key', 'X-API-KEY', 'X_Api_Key', 'authorization', 'Authorization, X-API-Key'])(
    'Connection: %s does not make the credential reach the upstream, nor hide it from Weir',
    async (named) => {
      const { ask, seen } = await openProxy()
      expect((await ask({ headers: { connection: `close, ${named}` } })).status).toBe(200)
      expect(JSON.stringify(seen)).not.toContain('acme-key')
    },
  )
})
