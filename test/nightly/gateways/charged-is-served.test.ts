import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { type GatewayName, gatewayStarts, openGateways } from '../../support/gateways/all-gateways.ts'
import type { Seen } from '../../support/gateways/plain-upstream.ts'
import { forFile } from '../../support/opened.ts'

countAttempts(
  'Requests through each gateway',
  'an API that obeys every header serves exactly the request that Weir decided and charged, for the caller that Weir named',
)

const key = 'key-of-acme'
const policy = `
version: 1
identity: { trustedProxies: [127.0.0.1/32], anonymous: free }
plans: { free: { limits: [many] } }
limits: { many: { algorithm: fixed_window, size: 1000000, window: 1h } }
routes:
  - { match: "POST /v1/units", cost: "header:x-units" }
  - { match: "* /v1/dear", cost: 50 }
  - { match: "GET /v1/free", cost: 0 }
subjects: { acme: { plan: free, keys: [{ sha256: "${sha256(key)}", id: k1 }] } }
`

const names = (Object.keys(gatewayStarts) as GatewayName[]).filter((name) => name !== 'envoy, gRPC, open')
const all = await forFile(openGateways(policy, names))

interface Case {
  readonly method?: string
  readonly path?: string
  readonly headers?: readonly string[]
  /** Envoy's rate limit filter knows neither costs in headers nor paths and callers in other forms. */
  readonly isInHeader?: true
}

const withKey = ['X-API-Key', key, 'Authorization', `Bearer ${key}`]
const dear = (...headers: string[]): Case => ({ path: '/v1/dear', headers })
const droppedKey = 'a credential that Connection names'

/** Each with a key, and each without. */
const attacks: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    ['Url', 'Uri', 'Method', 'Path', 'Host'].flatMap((word): [string, Case][] => [
      [`X-Original-${word}`, dear(`X-Original-${word}`, word === 'Method' ? 'GET' : '/v1/free')],
      [`X-Forwarded-${word}`, dear(`X-Forwarded-${word}`, word === 'Method' ? 'GET' : '/v1/free')],
      [
        `X-Original-${word} that Connection names`,
        dear(`X-Original-${word}`, '/v1/free', 'Connection', `close, X-Original-${word}, X-Forwarded-${word}`),
      ],
    ]),
  ),
  ...Object.fromEntries(
    'X-Weir-Subject X_Weir_Subject X-Weir-Plan X-Weir-Key-Id X-Weir-Degraded X-HTTP-Method-Override'
      .split(' ')
      .flatMap((name): [string, Case][] => [
        [name, dear(name, 'forged')],
        [`${name} that Connection names`, dear(name, 'forged', 'Connection', `close, ${name}`)],
      ]),
  ),
  ...Object.fromEntries(
    ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'True-Client-IP', 'X-Client-IP'].map((name) => [
      name,
      dear(name, name === 'Forwarded' ? 'for=9.9.9.9' : '9.9.9.9'),
    ]),
  ),
  'an empty X-Forwarded-For': dear('X-Forwarded-For', ''),
  'options of the question in the query': {
    path: '/v1/dear?deny_status=200&request_id=0123456789&method=GET&uri=/v1/free',
  },
  'a query that holds a path': { path: '/v1/dear?/../v1/free' },
  'a head of 50 kB': dear('X-Large', 'x'.repeat(50_000)),
  'a URL of 8 kB': { path: `/v1/dear?${'x'.repeat(8_000)}` },
  ...Object.fromEntries(
    ['PROPFIND', 'PURGE', 'TRACE', 'OPTIONS', 'HEAD', 'DELETE', 'PUT', 'M-SEARCH'].map((method) => [
      method,
      { method, path: '/v1/dear' },
    ]),
  ),
  ...Object.fromEntries(
    [
      '//v1/dear',
      '/v1/%64ear',
      '/v1/free/../dear',
      '/v1/dear/%2e%2e/free',
      '/v1/dear;x=1',
      '/v1%2fdear',
      '/v1\\dear',
      '/v1/./dear',
    ].map((path) => [`the path ${path}`, { path }]),
  ),
  ...Object.fromEntries(['GET', 'DELETE'].map((method) => [`${method} *`, { method, path: '*' }])),
  'X-Rewrite-URL': dear('X-Rewrite-URL', '/v1/free'),
  X_Original_URL: dear('X_Original_URL', '/v1/free'),
  'two keys': dear('X-API-Key', 'wrong'),
  'two credentials': dear('Authorization', 'Bearer wrong'),
  // Caddy and Envoy drop it before they ask, as RFC 9110 has it.
  [droppedKey]: dear('Connection', 'close, X-API-Key, Authorization'),
  'an empty credential': dear('Authorization', ''),
  'a body announced by Expect': { method: 'POST', path: '/v1/dear', headers: ['Expect', '100-continue'] },
  'Upgrade: h2c': dear('Connection', 'Upgrade', 'Upgrade', 'h2c'),
}

/** Names that sort before X-Units, as Caddy sorts them. */
const fillers = (count: number) => Array.from({ length: count }, (_, at) => [`A${at}`, 'a']).flat()
const post = (path: string, headers: readonly string[]): Case => ({ method: 'POST', path, headers })
const units = (...headers: string[]): Case => ({ ...post('/v1/units', [...headers, ...withKey]), isInHeader: true })
const free = (...headers: string[]) => post('/v1/free', [...withKey, ...headers])

const cases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    Object.entries(attacks).flatMap(([name, sent]): [string, Case][] => [
      [`${name}, with a key`, { ...sent, headers: ['X-API-Key', key, ...(sent.headers ?? [])], isInHeader: true }],
      [`${name}, without a key`, { ...sent, isInHeader: true }],
    ]),
  ),
  // With the gateway's own headers before it, X-Units is the 1,001st of the question of Caddy, of nginx, and far
  // beyond.
  ...Object.fromEntries(
    [993, 995, 2_000].map((count) => [
      `${count} filler headers, then X-Units: 300`,
      units(...fillers(count), 'X-Units', '300'),
    ]),
  ),
  'X-Rewrite-URL and X-Original-URL: /v1/dear': free('X-Rewrite-URL', '/v1/dear', 'X-Original-URL', '/v1/dear'),
  'X_Rewrite_URL and X.Original.URL: /v1/dear': free('X_Rewrite_URL', '/v1/dear', 'X.Original.URL', '/v1/dear'),
  'X-HTTP-Method-Override: DELETE': free('X-HTTP-Method-Override', 'DELETE'),
  'Connection: X-Units, and X-Units: 0': units('Connection', 'X-Units', 'X-Units', '0'),
  'Connection: close, x-units, and X-Units: 300': units('Connection', 'close, x-units', 'X-Units', '300'),
  'Connection: X-Weir-Subject, X-API-Key': free('Connection', 'X-Weir-Subject, X-API-Key'),
  'X-Units: 1, X_Units and X.Units: 500': units('X-Units', '1', 'X_Units', '500', 'X.Units', '500'),
  'X-Units: 1, X~Units and 11 like it: 500': units(
    'X-Units',
    '1',
    ...[..."!#$%&'*+^`|~"].flatMap((character) => [`X${character}Units`, '500']),
  ),
  'X~Weir~Subject: root': free('X~Weir~Subject', 'root', 'X!Weir!Subject', 'root'),
  'an empty X-Forwarded-For': free('X-Forwarded-For', ''),
  'an empty X-Forwarded-For, no key': post('/v1/free', ['X-Forwarded-For', '']),
  'X-Forwarded-For, X-Real-IP, True-Client-IP': free(
    ...['X-Forwarded-For', 'X-Forwarded-Prefix', 'X-Real-IP', 'X-Client-IP', 'True-Client-IP', 'X.Real.IP'].flatMap(
      (name) => [name, '9.9.9.9'],
    ),
    'Forwarded',
    'for=9.9.9.9',
  ),
  ...Object.fromEntries(
    [['first', key, 'nope'] as const, ['second', 'nope', key] as const].map(([which, ...tokens]) => [
      `two Authorization, the ${which} good`,
      post(
        '/v1/free',
        tokens.flatMap((token) => ['Authorization', `Bearer ${token}`]),
      ),
    ]),
  ),
}

/** The names under which an API may know a header: some read all but letters and digits as hyphens. */
const valuesOf = ({ rawHeaders }: Seen, name: string) =>
  rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase().replaceAll(/[^a-z\d]/g, '-') === name)

/** What the most generous reader makes of a path. */
function laxest(url: string): string {
  const segments: string[] = []
  for (const segment of decodeURIComponent(url.split('?')[0] ?? '')
    .replaceAll('\\', '/')
    .split('/')) {
    const name = segment.replace(/;.*/, '')
    if (name === '..') segments.pop()
    else if (name !== '' && name !== '.') segments.push(name)
  }
  return `/${segments.join('/')}`
}

/** What an API that heeds every header that it may know serves, in the words of a record. */
function served(seen: Seen) {
  const [url = ''] = [...valuesOf(seen, 'x-rewrite-url'), ...valuesOf(seen, 'x-original-url'), seen.url]
  const [method = ''] = [...valuesOf(seen, 'x-http-method-override'), seen.method]
  const path = laxest(url)
  if (path === '/v1/dear') return { method, cost: 50 }
  if (path === '/v1/free' && /GET|HEAD/.test(method)) return { method, cost: 0 }
  return { method, cost: path === '/v1/units' ? Number(valuesOf(seen, 'x-units').at(-1) ?? '1') : 1 }
}

const cells = Object.entries(cases).flatMap(([what, sent]) =>
  names
    .filter((name) => name !== 'envoy, gRPC' || sent.isInHeader === undefined)
    .map((name) => ({ what, name, ...sent })),
)

test.each(cells)('$what: what Weir charged is what the API got through $name', async ({ what, name, ...sent }) => {
  const { weir, upstream } = all
  const [recorded, before] = [weir.records.length, upstream.seen.length]
  const { status } = await all.send(name, sent)
  const [record, ...otherRecords] = weir.records.slice(recorded)
  const [got, ...others] = upstream.seen.slice(before)
  expect([otherRecords, others]).toEqual([[], []])
  if (got === undefined) {
    expect([status >= 400, record?.charged ?? 'no']).toEqual([true, 'no'])
    return
  }
  expect(record).toMatchObject({ outcome: 'allow', ...served(got) })
  const isDropped = what.startsWith(droppedKey) && record?.key_id === ''
  expect(record?.subject).toBe(sent.headers?.includes(key) === true && !isDropped ? 'acme' : 'ip:127.0.0.5')
  // Who calls, as Weir says it; the rate limit filter tells the API nothing of it.
  if (name !== 'envoy, gRPC') expect(valuesOf(got, 'x-weir-subject')).toEqual([record?.subject])
  expect(valuesOf(got, 'x-forwarded-for')).toEqual(['127.0.0.5'])
  // The short file of Caddy withholds no Authorization.
  const withheld = name === 'caddy, short' ? /9\.9\.9\.9|forged/ : /9\.9\.9\.9|forged|key-of-acme/
  expect(JSON.stringify(got.rawHeaders)).not.toMatch(withheld)
})
