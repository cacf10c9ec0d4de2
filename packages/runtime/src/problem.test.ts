import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import fastify from 'fastify'
import { expect, it, onTestFinished } from 'vitest'
import { createLogger } from './logger.ts'
import { listenerOptions } from './problem.ts'

const named = (name: string) => `GET /named/${name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`

it.each([
  ['no HTTP', 'hello\r\n\r\n', 400, 'bad-request', undefined],
  ['a path that cannot be decoded', named('%zz'), 400, 'bad-request', '%zz'],
  ['a name that is too long', named('a'.repeat(101)), 414, 'bad-request', 'aaa'],
  [
    'headers of more bytes than Node takes',
    `GET / HTTP/1.1\r\nHost: a\r\nA: ${'a'.repeat(17_000)}\r\n\r\n`,
    431,
    'headers-too-large',
    '16384',
  ],
])('%s is answered with a problem', async (_, sent, status, word, said = '') => {
  const app = fastify(listenerOptions(createLogger('test', 'silent')))
  onTestFinished(() => app.close())
  app.get('/named/:name', async () => 'found')
  await app.listen({ port: 0 })
  const socket = connect((app.server.address() as AddressInfo).port).on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(sent)
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*content-type: application/problem\\+json`))
  expect(JSON.parse(body)).toMatchObject({
    type: `urn:weir:problem:${word}`,
    status,
    detail: expect.stringContaining(said),
  })
})
