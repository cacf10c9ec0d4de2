import { createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../support/listen.ts'
import { openProxy } from './open-proxy.ts'

/** An upstream that answers the first request of each connection, and at the second `end`s it. */
async function openClosing(end: (socket: Socket) => void): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = []
  const upstream = createServer((socket) => {
    let requests = 0
    socket
      .on('error', () => undefined)
      .on('data', (bytes) => {
        requests += 1
        asked.push(`${bytes}`.split(' ', 1)[0] ?? '')
        if (requests > 1) return end(socket)
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      })
  })
  onTestFinished(() => void upstream.close())
  return { port: await listen(upstream), asked }
}

const ends: readonly [string, (socket: Socket) => void][] = [
  ['closes', (socket) => socket.end()],
  ['resets', (socket) => socket.resetAndDestroy()],
]
test.each(ends)('A GET on a connection that the upstream %s is sent again; a POST is not', async (_, end) => {
  const { port, asked } = await openClosing(end)
  const { ask, outcomes } = await openProxy({ upstream: `url: "http://127.0.0.1:${port}"` })
  const statuses = async (method: string) => {
    const all: number[] = []
    const asking = method === 'POST' ? { method, body: 'x' } : { method }
    for (let at = 0; at < 10; at += 1) all.push((await ask(asking)).status)
    return all
  }
  expect(await statuses('GET')).toEqual(Array(10).fill(200))
  expect(asked.length).toBeGreaterThan(10)
  expect(outcomes.length).toBe(10)
  expect((await statuses('POST')).filter((status) => status === 502).length).toBeGreaterThan(3)
  expect(asked.filter((method) => method === 'POST').length).toBe(10)
})
test('An upstream that ends a new connection without an answer is asked once', async () => {
  let asked = 0
  const upstream = createServer((socket) =>
    socket.once('data', () => {
      asked += 1
      socket.end()
    }),
  )
  onTestFinished(() => void upstream.close())
  const { ask } = await openProxy({ upstream: `url: "http://127.0.0.1:${await listen(upstream)}"` })
  expect([(await ask()).status, asked]).toEqual([502, 1])
})
