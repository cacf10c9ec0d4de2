import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createGzip,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { topics } from '@weir/contracts/topics.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { listen } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { until } from '../../support/until.ts'

type Answer = (response: ServerResponse) => void
/** What the upstream answers next. */
let answer: Answer = () => undefined
const asked: IncomingMessage['headers'][] = []
const server = createServer((incoming, response) => {
  asked.push(incoming.headers)
  incoming.resume().on('end', () => answer(response))
})
const port = await listen(server)
await forFile(Promise.resolve({ close: async () => void server.closeAllConnections() }))

const policy = {
  version: 1,
  plans: { free: { limits: [] } },
  meters: {
    chat: { preset: 'openai', maxOutput: 1_000 },
    held: { preset: 'openai', maxOutput: 1_000, unsaid: 'hold' },
    usage: { preset: 'openai', maxOutput: 1_000, includeUsage: true },
    drained: { preset: 'openai', maxOutput: 1_000, drain: true },
  },
  upstreams: { supplier: { url: `http://127.0.0.1:${port}`, hosts: ['*'] } },
  routes: ['chat', 'held', 'usage', 'drained'].map((meter) => ({ match: `POST /${meter}`, meter })),
  subjects: { ann: { plan: 'free', keys: [{ sha256: sha256('ann') }] } },
}
const stack = await forFile(startIngressStack(policy))

/** Asks, and gives the answer as it is on the wire. */
async function ask(meter: string, proxy = stack.ingress.proxy) {
  const sent = request(`${proxy}/${meter}`, {
    method: 'POST',
    agent: false,
    headers: { 'x-api-key': 'ann', 'content-type': 'application/json', 'accept-encoding': 'gzip' },
  })
  sent.on('error', () => undefined).end(JSON.stringify({ model: 'm', stream: true, messages: [{ content: 'x' }] }))
  const [got] = (await once(sent, 'response')) as [IncomingMessage]
  const id = String(got.headers['weir-decision'])
  return { sent, got, id, bytes: () => buffer(got) }
}

/** Resolves once the ingress knows that the client of this answer has gone. */
const left = (id: string) =>
  readTopic(kafkaOptions(stack.kafka.address), topics.outcomes, (all) =>
    all.some(({ value }) => `${value}`.includes(id) && `${value}`.includes('client_gone')),
  )

/** What an answer was settled to. */
async function settlement(id: string) {
  const isIts = (one: { readonly id: string; readonly corrects?: string }) => one.id === id || one.corrects === id
  const found = await readDecisions(stack.kafka, isIts, (all) => all.length === 2)
  const { units, basis } = found.find((one) => one.corrects === id) ?? {}
  return [units?.output_tokens, basis]
}

const sync = { flush: constants.Z_SYNC_FLUSH }
const encoders = {
  gzip: () => createGzip(sync),
  'x-gzip': () => createGzip(sync),
  deflate: () => createDeflate(sync),
  br: () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: () => createZstdCompress({ flush: constants.ZSTD_e_flush }),
}
const names = Object.keys(encoders) as (keyof typeof encoders)[]
const encode = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
}

const usage = { prompt_tokens: 3, completion_tokens: 4 }
const json = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(300) } }], usage })
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
const word = event({ choices: [{ delta: { content: 'word ' } }] })
const stream = [...Array.from({ length: 20 }, () => word), event({ choices: [], usage }), 'data: [DONE]\n\n']

/** The stream as its server flushes it: each event whole in a piece, the end of the encoding in the last. */
async function flushed(name: keyof typeof encoders): Promise<Buffer[]> {
  const encoder = encoders[name]()
  const pieces: Buffer[] = []
  for (const text of stream) {
    encoder.write(text)
    await once(encoder, 'readable')
    pieces.push(encoder.read() as Buffer)
  }
  return [...pieces, await buffer(encoder.end())]
}

const whole =
  (type: string, encoding: string, bytes: Buffer): Answer =>
  (response) =>
    void response.writeHead(200, { 'content-type': type, 'content-encoding': encoding }).end(bytes)

/** Sends these pieces, then waits; `open` gives the response. */
function begins(pieces: readonly Buffer[]) {
  const { promise: open, resolve } = Promise.withResolvers<ServerResponse>()
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
    response.write(Buffer.concat(pieces))
    resolve(response)
  }
  return open
}

test.each(names)('A response in %s is settled to what it says, and passed on as it is', async (name) => {
  const bytes = encode[name](json)
  answer = whole('application/json', name, bytes)
  const plain = await ask('chat')
  expect([(await plain.bytes()).equals(bytes), plain.got.headers['content-encoding']]).toEqual([true, name])
  expect(await settlement(plain.id)).toEqual([4, 'reported'])
  const pieces = await flushed(name)
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': name })
    for (const piece of pieces) response.write(piece)
    response.end()
  }
  const streamed = await ask('chat')
  expect((await streamed.bytes()).equals(Buffer.concat(pieces))).toBe(true)
  expect(await settlement(streamed.id)).toEqual([4, 'reported'])
  expect(asked.at(-1)?.['accept-encoding']).toBe('identity')
})

test('A response that the upstream breaks off counts as far as it could be read', async () => {
  const pieces = (await flushed('gzip')).slice(0, 12)
  const open = begins(pieces)
  const { got, id } = await ask('chat')
  let bytes = 0
  got.on('data', ({ length }: Buffer) => {
    bytes += length
  })
  got.on('error', () => undefined)
  const response = await open
  await until(async () => bytes === Buffer.concat(pieces).length)
  response.destroy()
  expect(await settlement(id)).toEqual([20, 'counted'])
})

test('A client that hangs up pays for what it has seen of an encoded stream', async () => {
  void begins((await flushed('gzip')).slice(0, 20))
  const { sent, got, id } = await ask('chat')
  await once(got, 'data')
  sent.destroy()
  expect(await settlement(id)).toEqual([34, 'counted'])
})

test('An encoded response is read to its end although its client has gone, where the meter says so', async () => {
  const pieces = await flushed('gzip')
  const open = begins(pieces.slice(0, 5))
  const { sent, got, id } = await ask('drained')
  await once(got, 'data')
  sent.destroy()
  await left(id)
  ;(await open).end(Buffer.concat(pieces.slice(5)))
  expect(await settlement(id)).toEqual([4, 'reported'])
})

test('At a stop the part of an encoded response that has come is decoded and settled', async () => {
  const other = await stack.start()
  void begins((await flushed('gzip')).slice(0, 20))
  const { sent, got, id } = await ask('drained', other.proxy)
  await once(got, 'data')
  sent.destroy()
  await left(id)
  await other.close()
  expect(await settlement(id)).toEqual([34, 'counted'])
})

test.each([
  ['broken', 'gzip', Buffer.concat([gzipSync(json).subarray(0, 30), Buffer.alloc(270, 0xff)])],
  ['in no encoding', 'gzip', Buffer.from('x'.repeat(300))],
  ['in an unknown encoding', 'rot13', Buffer.from('x'.repeat(300))],
  ['encoded twice', 'gzip, br', brotliCompressSync(gzipSync(Buffer.from('x'.repeat(300))))],
])('A response that is %s is passed on as it is, and has said no usage', async (_, encoding, bytes) => {
  for (const [meter, expected] of [
    ['chat', [Math.ceil(bytes.length / 3), 'counted']],
    ['held', [1_000, 'bound']],
  ] as const) {
    answer = whole('application/json', encoding, bytes)
    const { got, id, bytes: read } = await ask(meter)
    expect([got.statusCode, (await read()).equals(bytes)]).toEqual([200, true])
    expect(await settlement(id)).toEqual(expected)
  }
})

test('A bomb is passed on as it is, and not read to its end', async () => {
  const bomb = gzipSync(`"${'x'.repeat(64_000_000)}"`, { level: 9 })
  answer = whole('application/json', 'gzip', bomb)
  const { id, bytes } = await ask('held')
  expect((await bytes()).equals(bomb)).toBe(true)
  expect(await settlement(id)).toEqual([1_000, 'bound'])
})

test('An encoded stream that Weir asked for its usage is not held back, and has its event', async () => {
  const pieces = await flushed('gzip')
  const open = begins(pieces.slice(0, 1))
  const { got, id } = await ask('usage')
  const [first] = (await once(got, 'data')) as [Buffer]
  const rest = buffer(got)
  ;(await open).end(Buffer.concat(pieces.slice(1)))
  expect(Buffer.concat([first, await rest]).equals(Buffer.concat(pieces))).toBe(true)
  expect(await settlement(id)).toEqual([4, 'reported'])
})
