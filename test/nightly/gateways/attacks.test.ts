import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { startCaddy } from '../../support/gateways/caddy.ts'
import { startEnvoy } from '../../support/gateways/envoy.ts'
import { startHaproxy } from '../../support/gateways/haproxy.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { type PlainUpstream, startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps, type WeirApps } from '../../support/gateways/weir-apps.ts'

const policy = `
version: 1
identity: { trustedProxies: [127.0.0.1/32], anonymous: free }
plans: { free: { limits: [many] } }
limits: { many: { algorithm: fixed_window, size: 1000000, window: 1h } }
routes:
  - { match: "* /v1/dear", cost: 50 }
  - { match: "GET /v1/free", cost: 0 }
subjects: { acme: { plan: free, keys: [{ sha256: "${sha256('key-of-acme')}", id: k1 }] } }
`
const starts = {
  nginx: startNginx,
  'nginx, open': (behind: Behind) => startNginx({ ...behind, whenAway: 'open' }),
  caddy: startCaddy,
  haproxy: startHaproxy,
  'haproxy, open': (behind: Behind) => startHaproxy({ ...behind, whenAway: 'open' }),
  envoy: startEnvoy,
  'envoy, open': (behind: Behind) => startEnvoy({ ...behind, whenAway: 'open' }),
}
interface Behind {
  readonly weirApi: string
  readonly upstream: string
}

let weir: WeirApps
let upstream: PlainUpstream
const gateways = new Map<string, Gateway>()
beforeAll(async () => {
  upstream = await startPlainUpstream()
  weir = await openWeirApps(policy)
  const behind = { weirApi: weir.api, upstream: upstream.url }
  await Promise.all(Object.entries(starts).map(async ([name, start]) => gateways.set(name, await start(behind))))
}, 180_000)
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close()
  await weir?.close()
  await upstream?.close()
})

interface Case {
  readonly method?: string
  readonly path?: string
  readonly headers?: readonly string[]
}
const key = ['X-API-Key', 'key-of-acme']
const dear = (...headers: string[]): Case => ({ path: '/v1/dear', headers })
const droppedKey = 'a credential that Connection names'
/** Each with a key, and each without. */
const cases: Readonly<Record<string, Case>> = {
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

/** By these an API may serve another path, or believe another address. */
const withheld = 'x-original-url x-rewrite-url x-forwarded-for x-real-ip x-client-ip true-client-ip forwarded'.split(
  ' ',
)

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

countAttempts(
  'Requests through each gateway',
  'what Weir decided and charged is what the API got, from the caller it named',
)

describe.each(Object.keys(starts))('through %s', (gateway) => {
  test.each(Object.keys(cases).flatMap((name) => [[name, true] as const, [name, false] as const]))(
    '%s, with a key: %s',
    async (name, hasKey) => {
      const { method = 'GET', path = '/', headers = [] } = cases[name] ?? {}
      const [recorded, before] = [weir.records.length, upstream.seen.length]
      const sent = { method, path, headers: [...(hasKey ? key : []), ...headers] }
      const { status } = await send(gateways.get(gateway)?.url ?? '', sent)
      const [record, ...otherRecords] = weir.records.slice(recorded)
      const [got, ...others] = upstream.seen.slice(before)
      expect([otherRecords, others]).toEqual([[], []])
      if (got === undefined) return expect(status).toBeGreaterThanOrEqual(400)
      const path_ = laxest(got.url)
      const cost = path_ === '/v1/dear' ? 50 : path_ === '/v1/free' && /GET|HEAD/.test(got.method) ? 0 : 1
      const isDropped = name === droppedKey && record?.key_id === ''
      const subject = hasKey && !isDropped ? 'acme' : 'ip:127.0.0.5'
      expect(record).toMatchObject({ outcome: 'allow', method: got.method, cost, subject })
      expect(got.headers['x-weir-subject']).toBe(subject)
      expect(JSON.stringify(got.rawHeaders)).not.toMatch(/forged|key-of-acme/)
      for (const one of withheld) expect(got.headers[one] ?? '').not.toMatch(/v1.free|9\.9\.9\.9/)
    },
  )
})
