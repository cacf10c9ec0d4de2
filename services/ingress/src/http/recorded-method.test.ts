import { once } from 'node:events'
import { createServer, METHODS } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openMemoryIngress, sha256 } from '../testing/memory-ingress.ts'

const policyText = (port: number) => `
version: 1
identity: { trustedProxies: [127.0.0.1/32] }
plans: { free: { limits: [each] } }
limits:
  each: { algorithm: fixed_window, size: 100, window: 1m, by: [subject, method] }
  descriptors: { algorithm: fixed_window, size: 100, window: 1m, by: [global] }
routes:
  - { match: "* /v1/any", cost: 2 }
  - { match: "CHARGE /v1/any", cost: 3 }
  - { match: "POST /v1/posted", cost: 5 }
  - { match: "DESCRIPTOR /domain/key/value", cost: 7, limits: [descriptors] }
upstreams: { here: { url: "http://127.0.0.1:${port}" } }
subjects: { acme: { plan: free, keys: [ { sha256: "${sha256('acme-key')}" } ] } }
`

async function open() {
  const upstream = createServer((_, response) => response.end())
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const outcomes: string[] = []
  const { api, proxy, records } = await openMemoryIngress(policyText((upstream.address() as AddressInfo).port), {
    outcomes: { append: (_key, line) => outcomes.push(line) > 0 },
  })
  onTestFinished(async () => {
    await proxy.close()
    upstream.close()
  })
  const headers = { authorization: 'Bearer acme-key' }
  const batch = async (checks: readonly object[]) =>
    (await api.inject({ method: 'POST', url: '/v1/check/batch', headers, payload: { checks } })).json().results
  return { api, proxy, headers, batch, outcomes, records }
}

test('methods that HTTP does not have are recorded as one, by the check API and by batches, and are one to limits by method', async () => {
  const { api, headers, batch, records } = await open()
  const madeUp = Array.from(
    { length: 40 },
    (_, at) => `QZ${String.fromCharCode(65 + (at % 26))}-${'X'.repeat(at % 9)}K`,
  )
  const results = await batch([
    ...madeUp.map((method) => ({ method, route: '/x' })),
    ...madeUp.map((method) => ({ route: `${method} /x` })),
    { method: 'OTHER' },
    { route: 'G\u00c9T /x' },
  ])
  expect(new Set(records.map(({ method }) => method))).toEqual(new Set(['OTHER']))
  expect(results.at(-1).limits).toMatchObject([{ name: 'each', used: 82 }])
  const check = (payload: object) => api.inject({ method: 'POST', url: '/v1/check', headers, payload })
  for (const method of ['QZTKAB', 'get', 'm-search', '']) await check({ method })
  expect(records.slice(-4).map(({ method }) => method)).toEqual(['OTHER', 'GET', 'M-SEARCH', ''])
})

test('every method that HTTP has is recorded as it is', async () => {
  const { batch, records } = await open()
  await batch(METHODS.map((method) => ({ method })))
  expect(records.map(({ method }) => method)).toEqual(METHODS)
})

test('a made-up method meets the route that names it, else that of any method, and never a route for descriptors', async () => {
  const { batch, records } = await open()
  const asked = ['QZT /v1/any', 'CHARGE /v1/any', 'QZT /v1/posted', 'DESCRIPTOR /domain/key/value']
  await batch(asked.map((route) => ({ route })))
  expect(records.map(({ method, route, cost }) => [method, route, cost])).toEqual([
    ['OTHER', '* /v1/any', 2],
    ['OTHER', 'CHARGE /v1/any', 3],
    ['OTHER', '*', 1],
    ['OTHER', '*', 1],
  ])
})

test('a gateway that asks about a request with a made-up method is refused, and nothing is recorded', async () => {
  const { api, headers, records } = await open()
  const original = { ...headers, 'x-original-method': 'QZTKAB', 'x-original-uri': '/v1/any' }
  const answer = await api.inject({
    method: 'GET',
    url: '/v1/authorize',
    headers: original,
    remoteAddress: '127.0.0.1',
  })
  expect([answer.statusCode, records]).toEqual([400, []])
})

test('through the proxy a method that HTTP does not have is refused, and one of RTSP is recorded as the others', async () => {
  const { proxy, outcomes, records } = await open()
  await proxy.listen({ host: '127.0.0.1', port: 0 })
  const { port } = proxy.server.address() as AddressInfo
  const statusOf = async (line: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(`${line}\r\nHost: a\r\nX-API-Key: acme-key\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
    const parts: Buffer[] = []
    socket.on('data', (part) => parts.push(part))
    await once(socket, 'close')
    return Buffer.concat(parts).toString().split(' ')[1]
  }
  expect(await statusOf('QZTKAB /v1/any HTTP/1.1')).toBe('400')
  expect(records).toEqual([])
  // Node reads these lines too, and its list of methods does not have them.
  await statusOf('DESCRIBE /v1/any RTSP/1.0')
  await statusOf('SETUP /v1/any RTSP/1.0')
  expect(new Set(records.map(({ method }) => method))).toEqual(new Set(['OTHER']))
  expect(outcomes.map((line) => /"method":"(\w+)"/.exec(line)?.[1])).toEqual(records.map(() => 'OTHER'))
})
