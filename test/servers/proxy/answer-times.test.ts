import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { openProxy } from './open-proxy.ts'

const own = 'Host: api.test\r\nX-API-Key: acme-key\r\n'

test('The time of every request is observed once, by the code of its answer, also of one that is broken off; that of an upstream where it was asked', async () => {
  const { port, ask, raw, seen, metrics } = await openProxy({
    serve: ({ url }, response) => {
      if (url === '/hangs') return
      if (url === '/breaks') response.write('half', () => response.destroy())
      else response.end('made')
    },
  })
  const poor = { headers: { 'x-api-key': 'poor-key' } }
  const asked = [{}, poor, poor, { headers: { 'x-api-key': 'wrong-key' } }, { headers: { host: 'gone.test' } }]
  const statuses = []
  for (const one of asked) statuses.push((await ask(one)).status)
  expect(statuses).toEqual([200, 200, 429, 401, 502])
  await raw(`GET /breaks HTTP/1.1\r\n${own}\r\n`)
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /hangs HTTP/1.1\r\n${own}\r\n`)
  await once(socket, 'ready')
  await until(() => seen.at(-1)?.url === '/hangs', 10_000)
  socket.destroy()
  const counts = () => metrics.answers.proxy.byCode.map(([code, { count }]) => `${code} ${count}`)
  const wanted = ['2xx 2', '3xx 0', '4xx 1', '5xx 2', '429 1', '499 1']
  await expect.poll(counts, { timeout: 10_000 }).toEqual(wanted)
  const upstreams = [...metrics.upstreams.entries()].map(([name, { count }]) => [name, count])
  // The client that hung up says nothing about its upstream.
  expect(upstreams).toEqual([
    ['here', 3],
    ['gone', 1],
  ])
})
