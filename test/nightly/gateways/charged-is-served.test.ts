import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { startCaddy } from '../../support/gateways/caddy.ts'
import { startEnvoy, startEnvoyOverGrpc } from '../../support/gateways/envoy.ts'
import { startHaproxy } from '../../support/gateways/haproxy.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { type PlainUpstream, type Seen, startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps, type WeirApps } from '../../support/gateways/weir-apps.ts'

countAttempts('Requests through each gateway', 'what Weir charged is what an API that heeds every header serves')

const key = 'key-of-acme'
const policy = `
version: 1
identity: { trustedProxies: [127.0.0.1/32], anonymous: free }
plans: { free: { limits: [many] } }
limits: { many: { algorithm: fixed_window, size: 1000000, window: 1h } }
routes:
  - { match: "POST /v1/units", cost: "header:x-units" }
  - { match: "POST /v1/dear", cost: 50 }
subjects: { acme: { plan: free, keys: [{ sha256: "${sha256(key)}", id: k1 }] } }
`

const starts = {
  nginx: startNginx,
  'nginx, open': (behind: Behind) => startNginx({ ...behind, whenAway: 'open' }),
  caddy: (behind: Behind) => startCaddy(behind),
  'caddy, short': (behind: Behind) => startCaddy(behind, 'weir-short.caddyfile'),
  haproxy: startHaproxy,
  'haproxy, open': (behind: Behind) => startHaproxy({ ...behind, whenAway: 'open' }),
  envoy: (behind: Behind) => startEnvoy({ ...behind, lists: 'x-units' }),
  'envoy, open': (behind: Behind) => startEnvoy({ ...behind, lists: 'x-units', whenAway: 'open' }),
  'envoy, gRPC': ({ grpc, upstream }: Behind) => startEnvoyOverGrpc({ grpc, upstream }),
}
interface Behind {
  readonly weirApi: string
  readonly grpc: string
  readonly upstream: string
}

let weir: WeirApps
let upstream: PlainUpstream
const gateways = new Map<string, Gateway>()
const table: string[] = []

beforeAll(async () => {
  upstream = await startPlainUpstream()
  weir = await openWeirApps(policy)
  const behind = { weirApi: weir.api, grpc: weir.grpc, upstream: upstream.url }
  for (const [name, start] of Object.entries(starts)) gateways.set(name, await start(behind))
}, 180_000)
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close()
  await weir?.close()
  await upstream?.close()
  process.stdout.write(`\nwhat was sent | through | status | Weir charged | the API got\n${table.join('\n')}\n`)
})

/** Names that sort before X-Units, as Caddy sorts them. */
const fillers = (count: number) => Array.from({ length: count }, (_, at) => [`A${at}`, 'a']).flat()

interface Case {
  readonly path: string
  readonly headers: readonly string[]
  /** Envoy's rate limit filter knows no costs in headers. */
  readonly isInHeader?: true
}

const withKey = ['X-API-Key', key, 'Authorization', `Bearer ${key}`]
const units = (...headers: string[]): Case => ({
  path: '/v1/units',
  headers: [...headers, ...withKey],
  isInHeader: true,
})
const free = (...headers: string[]): Case => ({ path: '/v1/free', headers: [...withKey, ...headers] })

const cases: Readonly<Record<string, Case>> = {
  // With the gateway's own headers before it, X-Units is the 1,001st of the question of Caddy, of nginx, and far
  // beyond.
  ...Object.fromEntries(
    [993, 995, 2_000].map((count) => [
      `${count} filler headers, then X-Units: 300`,
      { path: '/v1/units', headers: ['X-API-Key', key, ...fillers(count), 'X-Units', '300'], isInHeader: true },
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
  'an empty X-Forwarded-For, no key': { path: '/v1/free', headers: ['X-Forwarded-For', ''] },
  'X-Forwarded-For, X-Real-IP, True-Client-IP': free(
    ...['X-Forwarded-For', 'X-Forwarded-Prefix', 'X-Real-IP', 'X-Client-IP', 'True-Client-IP', 'X.Real.IP'].flatMap(
      (name) => [name, '9.9.9.9'],
    ),
    'Forwarded',
    'for=9.9.9.9',
  ),
  'two Authorization, the first good': {
    path: '/v1/free',
    headers: ['Authorization', `Bearer ${key}`, 'Authorization', 'Bearer nope'],
  },
  'two Authorization, the second good': {
    path: '/v1/free',
    headers: ['Authorization', 'Bearer nope', 'Authorization', `Bearer ${key}`],
  },
}

/** The names under which an API may know a header: some read all but letters and digits as hyphens. */
const valuesOf = ({ rawHeaders }: Seen, name: string) =>
  rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase().replaceAll(/[^a-z\d]/g, '-') === name)

/** What an API that heeds every header that it may know serves, in the words of a record. */
function served(seen: Seen) {
  const [path] = [...valuesOf(seen, 'x-rewrite-url'), ...valuesOf(seen, 'x-original-url'), seen.url]
  const units = path === '/v1/units' ? (valuesOf(seen, 'x-units').at(-1) ?? '1') : '1'
  const [method] = [...valuesOf(seen, 'x-http-method-override'), seen.method]
  return { method, cost: path === '/v1/dear' ? 50 : Number(units) }
}

const cells = Object.entries(cases).flatMap(([what, sent]) =>
  Object.keys(starts)
    .filter((name) => name !== 'envoy, gRPC' || sent.isInHeader === undefined)
    .map((name) => ({ what, name, ...sent })),
)

test.each(cells)(
  '$what: what Weir charged is what the API got through $name',
  async ({ what, name, path, headers }) => {
    const [recorded, before] = [weir.records.length, upstream.seen.length]
    const answer = await send(gateways.get(name)?.url ?? '', { method: 'POST', path, headers })
    const [record, ...otherRecords] = weir.records.slice(recorded)
    const [got, ...others] = upstream.seen.slice(before)
    const does = got && served(got)
    const said = does === undefined ? 'nothing' : `${does.method} for ${does.cost}`
    table.push(`${what} | ${name} | ${answer.status} | ${record?.charged === 'yes' ? record.cost : 0} | ${said}`)
    expect([otherRecords, others]).toEqual([[], []])
    if (got === undefined) {
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(record?.charged ?? 'no').toBe('no')
      return
    }
    expect(record).toMatchObject({ outcome: 'allow', ...does })
    expect(record?.subject).toBe(headers.includes(key) ? 'acme' : 'ip:127.0.0.5')
    // Who calls, as Weir says it; the rate limit filter tells the API nothing of it.
    if (name !== 'envoy, gRPC') expect(valuesOf(got, 'x-weir-subject')).toEqual([record?.subject])
    expect(valuesOf(got, 'x-forwarded-for')).toEqual(['127.0.0.5'])
    expect(JSON.stringify(got.rawHeaders)).not.toMatch(/9\.9\.9\.9/)
  },
)
