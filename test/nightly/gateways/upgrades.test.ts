import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, test } from 'vitest'
import { type GatewayName, gatewayStarts } from '../../support/gateways/all-gateways.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps } from '../../support/gateways/weir-apps.ts'
import { listen } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'

const policy = `
version: 1
identity: { trustedProxies: [127.0.0.1/32], anonymous: free }
plans: { free: { limits: [] } }
`
/** An API that switches to whatever is asked for. */
const upstream = createServer((_request, response) => response.end('served'))
const tunnels: string[] = []
upstream.on('upgrade', ({ headers }: IncomingMessage, socket: Duplex) => {
  tunnels.push(`${headers.upgrade} by ${headers.connection} for ${headers['x-weir-subject']}`)
  socket.on('error', () => undefined)
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11` // RFC 6455 section 1.3
  const accept = `Sec-WebSocket-Accept: ${createHash('sha1').update(key).digest('base64')}`
  const switched = `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: ${headers.upgrade}`
  socket.end(`${switched}\r\n${accept}\r\n\r\n`)
})

const names: readonly GatewayName[] = ['nginx', 'caddy', 'caddy, short', 'haproxy', 'envoy']
const gateways = new Map<string, Gateway>()

const weir = await forFile(openWeirApps(policy))
const behind = { weirApi: weir.api, grpc: weir.grpc, upstream: `http://127.0.0.1:${await listen(upstream)}` }
for (const name of names) gateways.set(name, await gatewayStarts[name](behind))
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close()
  upstream.closeAllConnections()
  upstream.close()
})

/** The status of the answer to one request that asks for other protocols. */
async function statusOf(name: string, connection: string, protocols: readonly string[]): Promise<number> {
  const origin = gateways.get(name)?.url ?? ''
  const headers = [
    'Host',
    new URL(origin).host,
    'Connection',
    connection,
    ...protocols.flatMap((one) => ['Upgrade', one]),
  ]
  const websocket = ['Sec-WebSocket-Version', '13', 'Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ==']
  const sent = request(origin, { agent: false, localAddress: '127.0.0.5', headers: [...headers, ...websocket] })
  let status = 0
  sent.once('response', (answer) => {
    answer.resume()
    status = answer.statusCode ?? 0
  })
  sent.once('upgrade', (answer, socket) => {
    socket.destroy()
    status = answer.statusCode ?? 0
  })
  sent.once('error', () => {
    status = -1
  })
  sent.end()
  await waitUntil(() => status !== 0, { deadlineMs: 10_000 })
  return status
}

test.each(names)(
  'no tunnel is opened through %s but a WebSocket: requests in others would not be decided',
  async (name) => {
    const asked = [
      'h2c',
      'h2c-14',
      'h2',
      'spdy/3',
      'TLS/1.2',
      'odd',
      'h2c, websocket',
      'websocket, h2c-14',
      'websocket/13',
    ]
    for (const protocol of asked) await statusOf(name, 'Upgrade', [protocol])
    await statusOf(name, 'Upgrade', ['h2c-14', 'websocket'])
    await statusOf(name, 'Upgrade, X-Weir-Subject', ['websocket', 'h2c-14'])
    const others = tunnels.splice(0).filter((tunnel) => !/^websocket by upgrade for ip:127\.0\.0\.5$/i.test(tunnel))
    expect(others).toEqual([])
  },
)

test.each(['caddy', 'caddy, short', 'haproxy'])('a WebSocket is decided and opened through %s', async (name) => {
  const before = weir.records.length
  expect(await statusOf(name, 'keep-alive, Upgrade', ['websocket'])).toBe(101)
  expect(tunnels.splice(0)).toMatchObject(
    [/^websocket by upgrade for ip:127\.0\.0\.5$/i].map((one) => expect.stringMatching(one)),
  )
  expect(weir.records).toHaveLength(before + 1)
})
