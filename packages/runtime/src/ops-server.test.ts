import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { Gauge, Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { closeHttpServer, type Readiness, startOpsServer } from './ops-server.ts'

test('The metrics show the readiness that was found last', async () => {
  const metrics = new Registry()
  let found: Readiness = 'waits for its server'
  const readiness = { server: () => found, disk: () => ({ warning: 'nearly full' }) }
  const server = await startOpsServer({ host: '127.0.0.1', port: 0, metrics, readiness })
  onTestFinished(() => closeHttpServer(server))
  const { port } = server.address() as AddressInfo
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  const shown = async () => (await get('/metrics')).match(/(?<=^weir_ready\w* )\d$/gm)
  expect(await get('/readyz')).toBe('server: waits for its server\ndisk: warning: nearly full\n')
  expect(await shown()).toEqual(['0', '1'])
  found = undefined
  await get('/readyz')
  expect(await shown()).toEqual(['1', '1'])
})

test('Requests for the metrics that come while the page is made share it', async () => {
  const metrics = new Registry()
  let made = 0
  const { promise: hold, resolve: release } = Promise.withResolvers<void>()
  const collect = async () => {
    made += 1
    await hold
  }
  metrics.registerMetric(new Gauge({ name: 'weir_made', help: 'pages', registers: [], collect }))
  const server = await startOpsServer({ host: '127.0.0.1', port: 0, metrics, readiness: {} })
  onTestFinished(() => closeHttpServer(server))
  let asked = 0
  server.on('request', () => (asked += 1))
  const { port } = server.address() as AddressInfo
  const pages = Array.from({ length: 20 }, async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
  await expect.poll(() => asked).toBe(20)
  release()
  for (const page of await Promise.all(pages)) expect(page).toContain('weir_made')
  expect(made).toBe(1)
})

test('A page that is made at once is shared by the requests that a turn of the event loop reads', async () => {
  const metrics = new Registry()
  let made = 0
  const collect = () => {
    made += 1
  }
  metrics.registerMetric(new Gauge({ name: 'weir_made', help: 'pages', registers: [], collect }))
  const server = await startOpsServer({ host: '127.0.0.1', port: 0, metrics, readiness: {} })
  onTestFinished(() => closeHttpServer(server))
  const { port } = server.address() as AddressInfo
  const ask = 'GET /metrics HTTP/1.1\r\nHost: a\r\n'
  const pages = Array.from({ length: 20 }, () => {
    const client = connect(port, '127.0.0.1')
    client.write(`${`${ask}\r\n`.repeat(9)}${ask}Connection: close\r\n\r\n`)
    return text(client)
  })
  expect((await Promise.all(pages)).join('').split('HTTP/1.1 200')).toHaveLength(201)
  expect(made).toBeLessThan(100)
})
