import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMemoryDecisionLog } from '@weir/ingress/testing/memory-decision-log.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { startCaddy } from '../../support/gateways/caddy.ts'
import { startEnvoy, startEnvoyOverGrpc } from '../../support/gateways/envoy.ts'
import { startHaproxy } from '../../support/gateways/haproxy.ts'
import { startNginx } from '../../support/gateways/nginx.ts'
import { type PlainUpstream, startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps, type WeirApps } from '../../support/gateways/weir-apps.ts'

interface Behind {
  readonly weirApi: string
  readonly grpc: string
  readonly upstream: string
}

const open = { whenAway: 'open' } as const
/** Those with `open` serve what they cannot ask about. */
const starts: Readonly<Record<string, (behind: Behind) => Promise<Gateway>>> = {
  nginx: (behind) => startNginx(behind),
  'nginx, open': (behind) => startNginx({ ...behind, ...open }),
  caddy: (behind) => startCaddy(behind),
  'caddy, short': (behind) => startCaddy(behind, 'weir-short.caddyfile'),
  haproxy: (behind) => startHaproxy(behind),
  'haproxy, open': (behind) => startHaproxy({ ...behind, ...open }),
  envoy: (behind) => startEnvoy(behind),
  'envoy, open': (behind) => startEnvoy({ ...behind, ...open }),
  'envoy over gRPC': (behind) => startEnvoyOverGrpc(behind),
  'envoy over gRPC, open': (behind) => startEnvoyOverGrpc({ ...behind, ...open }),
}

/** An issuer for each gateway, because Weir does not ask a hanging one again at once. */
const policyOf = (hangingPort: number, closedPort: number) => `
version: 1
identity:
  trustedProxies: [127.0.0.1/32]
  jwt:
${Object.keys(starts)
  .map(
    (name) =>
      `    - { issuer: "https://hanging.test/${encodeURIComponent(name)}", jwksUrl: "http://127.0.0.1:${hangingPort}/", allowPrivate: true, plan: free }`,
  )
  .join('\n')}
    - { issuer: "https://closed.test", jwksUrl: "http://127.0.0.1:${closedPort}/", allowPrivate: true, plan: free }
plans: { free: { limits: [] }, poor: { limits: [one] } }
limits: { one: { algorithm: sliding_log, size: 1, window: 1d } }
routes: [{ match: "POST /v1/dear", cost: 5 }]
subjects:
  acme: { plan: free, keys: [{ sha256: "${sha256('acme-key')}", id: k1 }] }
  poor: { plan: poor, keys: [{ sha256: "${sha256('poor-key')}", id: k2 }] }
`

const log = createMemoryDecisionLog()
let issuer: Server
let weir: WeirApps
let upstream: PlainUpstream
const gateways = new Map<string, Gateway>()

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const ask = (name: string, headers: Record<string, string>, path = '/v1/x') =>
  send(gateways.get(name)?.url ?? '', { method: 'POST', path, headers })

beforeAll(async () => {
  // It accepts connections and says nothing.
  issuer = createServer(() => undefined).listen(0, '127.0.0.1')
  upstream = await startPlainUpstream()
  const [closedPort = 0] = await freePorts(1)
  await vi.waitFor(() => expect(issuer.listening).toBe(true))
  weir = await openWeirApps(policyOf((issuer.address() as AddressInfo).port, closedPort), log)
  const behind = { weirApi: weir.api, grpc: weir.grpc, upstream: upstream.url }
  for (const [name, start] of Object.entries(starts)) gateways.set(name, await start(behind))
  // The first request takes all that the limit has; HAProxy marks Weir as up only once it has checked.
  for (const name of gateways.keys()) {
    if (!name.endsWith('open')) continue
    await vi.waitFor(
      async () => expect((await ask(name, bearer('acme-key'))).headers, name).toHaveProperty('weir-decision'),
      10_000,
    )
  }
  expect((await ask('nginx', bearer('poor-key'))).status).toBe(200)
}, 180_000)
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close()
  await weir?.close()
  await upstream?.close()
  issuer?.closeAllConnections()
  issuer?.close()
})
afterEach(() => {
  log.isFull = false
  log.isStalled = false
})

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const tokenOf = (iss: string) =>
  `${part({ alg: 'RS256', kid: `k${Math.random()}` })}.${part({ iss, sub: 'acme', exp: 9_999_999_999 })}.c2lnbmF0dXJl`

describe.each(Object.keys(starts))('%s', (name) => {
  const expectRefused = async (headers: Record<string, string>, path?: string) => {
    const before = upstream.seen.length
    const { status } = await ask(name, headers, path)
    expect([status >= 400, upstream.seen.length]).toEqual([true, before])
    return status
  }

  test.each([`https://hanging.test/${encodeURIComponent(name)}`, 'https://closed.test'])(
    'does not serve tokens of an issuer whose keys cannot be fetched, %s, the first nor the tenth',
    async (iss) => {
      const asked = Array.from({ length: 10 }, () => expectRefused(bearer(tokenOf(iss))))
      await Promise.all(asked)
      await expectRefused(bearer(tokenOf(iss)))
    },
  )

  test.each(['isFull', 'isStalled'] as const)(
    'does not serve a known refusal that could not be recorded (%s): by a limit, of a wrong key, of an odd path',
    async (fault) => {
      log[fault] = true
      await expectRefused(bearer('poor-key'))
      await expectRefused(bearer('poor-key'), '/v1/dear')
      await expectRefused(bearer('wrong'))
      await expectRefused({ 'x-api-key': 'wrong' })
      await expectRefused(bearer('acme-key'), '/v1%2Fdear')
    },
  )
})

test.each(Object.keys(starts).filter((name) => name.endsWith('open')))(
  '%s serves while Weir cannot be reached',
  async (name) => {
    const [away = 0] = await freePorts(1)
    const origin = { weirApi: `http://127.0.0.1:${away}`, grpc: `127.0.0.1:${away}`, upstream: upstream.url }
    const gateway = await starts[name]?.(origin)
    try {
      expect((await send(gateway?.url ?? '', { headers: bearer('acme-key') })).status).toBe(200)
    } finally {
      await gateway?.close()
    }
  },
)
