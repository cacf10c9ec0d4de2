import { createServer, type Socket } from 'node:net'
import { connectRedis } from '@weir/redis/connect.ts'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { listenForTest } from '../../support/listen.ts'

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
const array = (...texts: readonly string[]) => `*${texts.length}\r\n${texts.map(bulk).join('')}`

/**
 * Stands in for a Sentinel, whose timing cannot be chosen: asked again for the master, it first tells its subscribers
 * of the failover, and answers when they have hung up.
 */
async function listenAsSentinel(masterPort: string) {
  const subscribers = new Set<Socket>()
  let asked = 0
  const answer = (socket: Socket, words: readonly string[]) => {
    const command = words.join(' ').toLowerCase()
    if (command.startsWith('subscribe')) {
      subscribers.add(socket)
      return socket.write(`*3\r\n${bulk('subscribe')}${bulk('+switch-master')}:1\r\n`)
    }
    if (command === 'sentinel sentinels weir') return socket.write('*0\r\n')
    if (command !== 'sentinel get-master-addr-by-name weir') return socket.write('+OK\r\n')
    asked += 1
    const address = () => socket.write(array('127.0.0.1', masterPort))
    if (asked === 1) return address()
    for (const subscriber of subscribers) subscriber.write(array('message', '+switch-master', 'weir'))
    return vi.waitFor(() => expect(subscribers.size).toBe(0)).then(address)
  }
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('close', () => subscribers.delete(socket))
    socket.on('data', (data) => {
      const commands = data.toString().split(/^\*\d+\r\n/m)
      for (const text of commands.slice(1))
        answer(
          socket,
          text.split('\r\n').filter((_, at) => at % 2 === 1),
        )
    })
  })
  return { port: await listenForTest(server), subscribers, asked: () => asked }
}

test('notified of a failover while it asks for the master, a connection goes on to the master', async () => {
  const { port, username, password } = new URL(inject('redisUrl'))
  const sentinel = await listenAsSentinel(port)
  const redis = connectRedis(`redis+sentinel://${username}:${password}@127.0.0.1:${sentinel.port}/weir`, {
    role: 'limiter',
    onError: () => undefined,
  })
  onTestFinished(() => redis.disconnect())
  await vi.waitFor(() => expect(sentinel.subscribers.size).toBe(1))
  await vi.waitFor(() => expect(redis.status).toBe('ready'))

  redis.stream.destroy()

  await vi.waitFor(() => expect(sentinel.asked()).toBeGreaterThan(1))
  await vi.waitFor(() => expect(redis.status).toBe('ready'), { timeout: 5_000 })
  expect(await redis.ping()).toBe('PONG')
})
