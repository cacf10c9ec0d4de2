import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { endSilent, inTurn, waitingMax } from './bound-connections.ts'
import { createLogger } from './logger.ts'
import { listenerOptions } from './problem.ts'
import { waitUntil } from './wait-until.ts'

async function open(serve: RequestListener) {
  const server = endSilent(createServer({ keepAliveTimeout: 60_000 }, inTurn(serve)), 200).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as AddressInfo).port }
}

/** A client that reads all it gets, or nothing. */
function send(port: number, text: string, { reads = true } = {}) {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  let got = ''
  if (reads) {
    socket.on('data', (chunk) => {
      got += chunk
    })
  }
  socket.write(text)
  return { socket, got: () => got, ended: once(socket, 'close') }
}

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const until = (what: () => boolean) => waitUntil(async () => what(), { deadlineMs: 5_000, everyMs: 5 })

test('Requests that are sent ahead are served one after the other, and none of a client that has left', async () => {
  const begun: (() => void)[] = []
  let closed = 0
  const { port } = await open((_, response) => {
    begun.push(() => response.end('made'))
    response.once('close', () => (closed += 1))
  })
  const { socket, got } = send(port, get.repeat(1 + waitingMax))
  for (let served = 1; served <= 3; served += 1) {
    expect(await until(() => begun.length === served)).toBe(true)
    begun[served - 1]?.()
    expect(await until(() => got().split('made').length === served + 1)).toBe(true)
  }
  expect(await until(() => begun.length === 4)).toBe(true)
  socket.destroy()
  expect(await until(() => closed === 4)).toBe(true)
  expect(begun).toHaveLength(4)
})

test('A listener of Fastify ends a connection on which more requests wait than may', async () => {
  const app = fastify(listenerOptions(createLogger('test', 'silent')))
  onTestFinished(() => app.close())
  let asked = 0
  app.get('/', async () => {
    asked += 1
    await new Promise(() => undefined)
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const kept = send(port, get.repeat(1 + waitingMax))
  const { ended } = send(port, get.repeat(2 + waitingMax))
  await ended
  expect([asked, kept.socket.destroyed]).toEqual([2, false])
  expect([app.server.timeout, app.server.requestTimeout]).toEqual([60_000, 60_000])
  kept.socket.destroy()
})

test('A silent connection is ended if its request is unfinished or its answer unread, and no other is', async () => {
  let finish = () => undefined as unknown
  const { server, port } = await open((request, response) => {
    if (request.url === '/slow') finish = () => response.end('made')
    else if (request.url === '/long') response.end(Buffer.alloc(64_000_000))
    else request.resume().once('end', () => response.end())
  })
  const idle = send(port, get)
  const slow = send(port, 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
  const unfinished = send(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf')
  send(port, 'GET /long HTTP/1.1\r\nHost: a\r\n\r\n', { reads: false })
  await unfinished.ended
  let count = 0
  expect(await until(() => server.getConnections((_, all) => (count = all)) && count === 2)).toBe(true)
  expect([idle.socket.destroyed, slow.socket.destroyed]).toEqual([false, false])
  finish()
  expect(await until(() => slow.got().endsWith('made'))).toBe(true)
  idle.socket.write(get)
  expect(await until(() => idle.got().split('HTTP/1.1 200').length === 3)).toBe(true)
})
