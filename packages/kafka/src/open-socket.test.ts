import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { socketFactory } from './open-socket.ts'

it('a server that does not answer the handshake of TLS is named before kafkajs gives up', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const peers: Socket[] = []
  const server = createServer((peer) => void peers.push(peer))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const peer of peers) peer.destroy()
    server.close()
  })
  const tls = { ca: '', cert: '', key: '', serverName: '' }
  const { port } = server.address() as AddressInfo
  const open = socketFactory({ tls, sasl: undefined })
  const socket = open({ host: '127.0.0.1', port, ssl: {}, onConnect: () => undefined })
  const failed = new Promise<Error>((resolve) => socket.once('error', resolve))
  await new Promise((resolve) => socket.once('connect', resolve))
  await vi.advanceTimersByTimeAsync(8_000)
  expect((await failed).message).toMatch(/^127\.0\.0\.1:\d+ does not respond over TLS: .*WEIR_KAFKA_TLS$/)
})
