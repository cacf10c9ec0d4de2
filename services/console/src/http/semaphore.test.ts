import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { openConsole, openWithPolicy } from '../testing/open-console.ts'
import { createSemaphores } from './semaphore.ts'

it('answers eight questions of a credential at once and 32 of all, refuses the next, and goes on when one ends', async () => {
  const waiting: (() => void)[] = []
  const { ask, applyFile } = openConsole({
    askUsage: async () => {
      await new Promise<void>((done) => waiting.push(done))
      return []
    },
  })
  await applyFile()
  const tokens: string[] = []
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    tokens.push((await ask('POST /v1/tokens', { body: { name, scopes: ['usage'] } })).json().token)
  const asked: ReturnType<typeof ask>[] = []
  const ask8 = async (token: string) => {
    for (let at = 0; at < 8; at += 1) asked.push(ask('/v1/usage', { token }))
    await expect.poll(() => waiting.length).toBe(asked.length)
  }
  const refused = async (token: string | undefined) => {
    const answer = await ask('/v1/usage', token === undefined ? {} : { token })
    return [answer.statusCode, answer.json().type, answer.json().detail, answer.headers['retry-after']]
  }
  const why = (of: string) => [
    429,
    'urn:weir:problem:too-many-questions',
    `The maximum number of queries ${of} is running.`,
    '5',
  ]
  await ask8(tokens[0] ?? '')
  expect(await refused(tokens[0])).toEqual(why('for this credential'))
  for (const token of tokens.slice(1, 4)) await ask8(token)
  expect(await refused(tokens[4])).toEqual(why('for this console'))
  waiting.shift()?.()
  expect((await Promise.race(asked)).statusCode).toBe(200)
  const next = ask('/v1/usage', { token: tokens[4] ?? '' })
  await expect.poll(() => waiting.length).toBe(32)
  for (const done of waiting) done()
  expect((await Promise.all([...asked, next])).map(({ statusCode }) => statusCode)).toEqual(Array(33).fill(200))
})

it('keeps no permit for callers that left before they were counted', async () => {
  const { app, ask, applyFile } = openConsole()
  let isLeaving = true
  app.addHook('preValidation', async (request, reply) => {
    if (!isLeaving || request.url !== '/v1/usage') return
    const closed = once(reply.raw, 'close')
    reply.raw.destroy()
    await closed
  })
  await applyFile()
  for (let at = 0; at < 8; at += 1) await expect(ask('/v1/usage')).rejects.toThrow('destroyed')
  isLeaving = false
  expect((await ask('/v1/usage')).statusCode).toBe(200)
})

it.each([
  ['questions', '/v1/usage'],
  ['exports', '/v1/usage?format=csv'],
] as const)('frees the semaphores of %s that were sent ahead on a connection, when it is cut', async (kind, path) => {
  const semaphores = createSemaphores()
  const waits = () => new Promise<never>(() => undefined)
  const { app } = await openWithPolicy({ semaphores, askUsage: waits, openStream: waits })
  await app.listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => app.close())
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token\r\n\r\n`.repeat(9))
  await expect.poll(() => semaphores[kind].taken).toBe(1)
  socket.destroy()
  await expect.poll(() => [semaphores.questions.taken, semaphores.exports.taken]).toEqual([0, 0])
})
