import { once } from 'node:events'
import { createServer, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { isGone, watchClient } from './waiting-client.ts'

interface Seen {
  readonly answer: ServerResponse
  readonly socket: Socket
  readonly unwatch: () => void
  told: number
}

/** A server that answers no client and watches all of them. */
async function open() {
  const seen: Seen[] = []
  const server = createServer((_, answer) => watch(answer, answer.req.socket))
  server.on('upgrade', (request, _socket, head) => {
    const { socket } = request
    socket.on('error', () => undefined)
    // Even of nothing, this would make the stream read.
    if (head.length > 0) socket.unshift(head)
    const answer = new ServerResponse(request)
    answer.assignSocket(socket)
    watch(answer, socket)
  })
  function watch(answer: ServerResponse, socket: Socket): void {
    const one: Seen = { answer, socket, unwatch: watchClient(answer, () => (one.told += 1)), told: 0 }
    seen.push(one)
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const { socket } of seen) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void client.destroy())
  const see = (count: number) => waitUntil(async () => seen.length >= count, { deadlineMs: 5_000, everyMs: 1 })
  const told = () => waitUntil(async () => seen.every((one) => one.told > 0), { deadlineMs: 5_000, everyMs: 1 })
  return { client, seen, see, told }
}

const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
const upgrade = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'

test('Every answer to requests in a row learns of the close, not only the one that is being written', async () => {
  const { client, seen, see, told } = await open()
  client.write(get.repeat(12))
  await see(12)
  expect(seen.some(({ answer }) => isGone(answer))).toBe(false)
  client.destroy()
  await told()
  expect(seen.every(({ answer }) => isGone(answer))).toBe(true)
})

test.each(['destroy', 'end'] as const)(
  'A client that asked for another protocol is noticed when it hangs up, by %s',
  async (how) => {
    const { client, seen, see, told } = await open()
    client.write(upgrade)
    await see(1)
    client[how]()
    await told()
    expect(seen.map(({ answer }) => isGone(answer))).toEqual([true])
  },
)

test('The bytes that a client sends ahead of the other protocol are still there after the wait', async () => {
  const { client, seen, see } = await open()
  client.write(`${upgrade}one `)
  await see(1)
  client.write('two')
  const [one] = seen
  if (one === undefined) throw new Error('nobody came')
  await waitUntil(async () => one.socket.readableLength === 7, { deadlineMs: 5_000, everyMs: 1 })
  one.unwatch()
  let said = ''
  one.socket.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1')
  })
  await waitUntil(async () => said.length >= 7, { deadlineMs: 5_000, everyMs: 1 })
  expect([said, one.told, isGone(one.answer)]).toEqual(['one two', 0, false])
})
