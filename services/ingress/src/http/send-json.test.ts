import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fastify from 'fastify'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sendJson } from './send-json.ts'

/** A listener that answers `/N` with the Nth text once the test lets it, and the chunks in which its answers come. */
async function listen(texts: readonly string[]) {
  const app = fastify({ forceCloseConnections: true })
  const gates = texts.map(() => Promise.withResolvers<void>())
  const answered = texts.map(() => Promise.withResolvers<void>())
  const asked: string[] = []
  const lists: { mock: { calls: unknown[] } }[] = []
  app.get('/:at', (request, reply) => {
    asked.push(request.url)
    lists.push(vi.spyOn(request.raw.socket, '_writev'))
    const at = Number(request.url.slice(1))
    void gates[at]?.promise.then(() => {
      sendJson(reply, texts[at] ?? '', ['x-at', `${at}`])
      answered[at]?.resolve()
    })
  })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  onTestFinished(() => app.close())
  const socket = connect(Number(port), '127.0.0.1')
  return { socket, gates, answered, asked, lists }
}

const ask = (socket: Socket, at: number) => socket.write(`GET /${at} HTTP/1.1\r\nhost: x\r\n\r\n`)

/** The head of each answer, without its time, and its body. */
const partsOf = (text: string) =>
  text
    .replaceAll(/\r\nDate: [^\r]*/g, '')
    .split(/(?=HTTP\/1\.1 )/)
    .map((one) => one.split('\r\n\r\n'))

test('An answer is written as one text, with its length in bytes, also where it is no ASCII', async () => {
  const text = '{"name":"Größe"}'
  const { socket, gates, lists } = await listen([text])
  ask(socket, 0)
  gates[0]?.resolve()
  const [chunk] = await once(socket, 'data')
  const [[head = '', body] = []] = partsOf(String(chunk))
  expect(body).toBe(text)
  expect(head.split('\r\n').slice(0, 5)).toEqual([
    'HTTP/1.1 200 OK',
    'x-at: 0',
    'content-type: application/json; charset=utf-8',
    'cache-control: no-store',
    `content-length: ${Buffer.byteLength(text)}`,
  ])
  expect(lists.map(({ mock }) => mock.calls.length)).toEqual([0])
})

test('Answers to requests that were sent together come in their order, also if the second is ready first', async () => {
  const { socket, gates, answered } = await listen(['{"at":0}', '{"at":1}'])
  let text = ''
  socket.on('data', (chunk) => {
    text += String(chunk)
  })
  ask(socket, 0)
  ask(socket, 1)
  gates[1]?.resolve()
  await answered[1]?.promise
  expect(text).toBe('')
  gates[0]?.resolve()
  await expect.poll(() => partsOf(text).map(([, body]) => body)).toEqual(['{"at":0}', '{"at":1}'])
})

test('An answer to a client that is gone is dropped without an error', async () => {
  const { socket, gates, answered, asked } = await listen(['{}'])
  ask(socket, 0)
  await expect.poll(() => asked).toEqual(['/0'])
  socket.resetAndDestroy()
  await once(socket, 'close')
  gates[0]?.resolve()
  await answered[0]?.promise
})
