import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type GatewayName, type Gateways, gatewayStarts, openGateways } from '../../support/gateways/all-gateways.ts'
import { send } from '../../support/gateways/send.ts'
import { forTest } from '../../support/opened.ts'

const names = Object.keys(gatewayStarts) as GatewayName[]

/** An issuer for each gateway, because Weir does not ask a hanging one again at once. */
const policyOf = (hangingPort: number, closedPort: number) => `
version: 1
identity:
  trustedProxies: [127.0.0.1/32]
  jwt:
${names
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
let all: Gateways

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const ask = (name: string, headers: Record<string, string>, path = '/v1/x') =>
  all.send(name, { method: 'POST', path, headers })

beforeAll(async () => {
  // It accepts connections and says nothing.
  issuer = createServer(() => undefined).listen(0, '127.0.0.1')
  const [closedPort = 0] = await freePorts(1)
  await vi.waitFor(() => expect(issuer.listening).toBe(true))
  all = await openGateways(policyOf((issuer.address() as AddressInfo).port, closedPort), names, log)
  // The first request takes all that the limit has; HAProxy marks Weir as up only once it has checked.
  for (const name of names.filter((one) => one.endsWith('open'))) {
    await vi.waitFor(
      async () => expect((await ask(name, bearer('acme-key'))).headers, name).toHaveProperty('weir-decision'),
      10_000,
    )
  }
  expect((await ask('nginx', bearer('poor-key'))).status).toBe(200)
}, 180_000)
afterAll(async () => {
  await all?.close()
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

describe.each(names)('%s', (name) => {
  const expectRefused = async (headers: Record<string, string>, path?: string) => {
    const before = all.upstream.seen.length
    const { status } = await ask(name, headers, path)
    expect([status >= 400, all.upstream.seen.length]).toEqual([true, before])
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

test.each(names.filter((name) => name.endsWith('open')))('%s serves while Weir cannot be reached', async (name) => {
  const [away = 0] = await freePorts(1)
  const [weirApi, grpc] = [`http://127.0.0.1:${away}`, `127.0.0.1:${away}`]
  const gateway = await forTest(gatewayStarts[name]({ weirApi, grpc, upstream: all.upstream.url }))
  expect((await send(gateway.url, { headers: bearer('acme-key') })).status).toBe(200)
})
