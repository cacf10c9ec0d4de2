import { afterAll, beforeAll, expect, test } from 'vitest'
import { startCaddy } from '../../support/gateways/caddy.ts'
import { startEnvoy } from '../../support/gateways/envoy.ts'
import { startHaproxy } from '../../support/gateways/haproxy.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { type PlainUpstream, type Seen, startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps, sha256, type WeirApps } from '../../support/gateways/weir-apps.ts'

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
  caddy: startCaddy,
  haproxy: startHaproxy,
  'haproxy, open': (behind: Behind) => startHaproxy({ ...behind, whenAway: 'open' }),
  envoy: (behind: Behind) => startEnvoy({ ...behind, lists: 'x-units' }),
  'envoy, open': (behind: Behind) => startEnvoy({ ...behind, lists: 'x-units', whenAway: 'open' }),
}
interface Behind {
  readonly weirApi: string
  readonly upstream: string
}

let weir: WeirApps
let upstream: PlainUpstream
const gateways = new Map<string, Gateway>()
const table: string[] = []

beforeAll(async () => {
  upstream = await startPlainUpstream()
  weir = await openWeirApps(policy)
  const behind = { weirApi: weir.api, upstream: upstream.url }
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
}

const cases: Readonly<Record<string, Case>> = {
  // With the gateway's own headers before it, X-Units is the 1,001st of the question of Caddy, of nginx, and far beyond.
  ...Object.fromEntries(
    [993, 995, 2_000].map((count) => [
      `${count} filler headers, then X-Units: 300`,
      { path: '/v1/units', headers: [...fillers(count), 'X-Units', '300'] },
    ]),
  ),
}

/** What an API that heeds every header it may know would do, in the words of a record. */
function served({ method, headers, url, rawHeaders }: Seen) {
  const units = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && /^x[-_.]units$/i.test(name) ? [rawHeaders[at + 1]] : [],
  )
  const path = headers['x-rewrite-url'] ?? headers['x-original-url'] ?? url
  const cost = path === '/v1/units' ? Number(units.at(-1) ?? 1) : path === '/v1/dear' ? 50 : 1
  return { method: headers['x-http-method-override'] ?? method, cost, units: units.length }
}

const cells = Object.entries(cases).flatMap(([what, sent]) =>
  Object.keys(starts).map((name) => ({ what, name, ...sent })),
)

test.each(cells)(
  '$what: what Weir charged is what the API got through $name',
  async ({ what, name, path, headers }) => {
    const gateway = gateways.get(name)
    const [recorded, seen] = [weir.records.length, upstream.seen.length]
    const answer = await send(gateway?.url ?? '', { method: 'POST', path, headers: ['X-API-Key', key, ...headers] })
    const [record, ...otherRecords] = weir.records.slice(recorded)
    const [got, ...others] = upstream.seen.slice(seen)
    const does = got && served(got)
    const said = does === undefined ? 'nothing' : `${does.method} ${does.cost}`
    table.push(`${what} | ${name} | ${answer.status} | ${record?.charged === 'yes' ? record.cost : 0} | ${said}`)
    expect([otherRecords, others]).toEqual([[], []])
    if (does === undefined) {
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(record?.charged ?? 'no').toBe('no')
    } else {
      expect(record).toMatchObject({ outcome: 'allow', cost: does.cost, method: does.method })
    }
  },
)
