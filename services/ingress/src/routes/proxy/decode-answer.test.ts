import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Transform } from 'node:stream'
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  createZstdCompress,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { AnswerMeter } from '@weir/meters/measure-answer.ts'
import { meterDefaults } from '@weir/meters/meter.ts'
import { meterReaderOf } from '@weir/meters/meter-reader.ts'
import { expect, test } from 'vitest'
import { decodeAnswer } from './decode-answer.ts'

const mebibyte = 1_048_576
const sync = { flush: constants.Z_SYNC_FLUSH }
type Encode = (bytes: Buffer) => Buffer
const encodings: [string, Encode, () => Transform][] = [
  ['gzip', gzipSync, () => createGzip(sync)],
  ['x-gzip', gzipSync, () => createGzip(sync)],
  ['deflate', deflateSync, () => createDeflate(sync)],
  ['deflate', deflateRawSync, () => createDeflateRaw(sync)],
  ['br', brotliCompressSync, () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
  ['zstd', zstdCompressSync, () => createZstdCompress({ flush: constants.ZSTD_e_flush })],
]

const reader = meterReaderOf({ ...meterDefaults, name: 'openai', preset: 'openai' })
const request = {
  most: new Map([
    ['input_tokens', 1_000],
    ['output_tokens', 1_000],
  ]),
  isUnbounded: false,
  isDeferred: false,
  dimensions: new Map(),
  bytes: 400,
}
const usage = { prompt_tokens: 3, completion_tokens: 4 }
const answer = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(300) } }], usage })
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
const word = event({ choices: [{ delta: { content: 'word ' } }] })

/** What an answer of these pieces used. */
async function used(encoding: string, type: string, pieces: readonly Buffer[]) {
  const meter = new AnswerMeter(reader, { 'content-type': type })
  const decoder = decodeAnswer(encoding, (piece) => meter.write(piece))
  for (const piece of pieces) decoder.write(piece)
  await decoder.end(60_000)
  const bytesOut = Buffer.concat(pieces).length
  const { units, basis } = meter.end(request, { isFailed: false, bytesIn: 400, bytesOut, durationMs: 1, trailers: {} })
  return [units.get('input_tokens'), units.get('output_tokens'), basis]
}

/** How many bytes of an answer are read, and how many at a time. */
async function decoded(encoding: string, pieces: readonly Buffer[], msMax?: number) {
  let [bytes, largest] = [0, 0]
  const decoder = decodeAnswer(encoding, ({ length }) => {
    bytes += length
    largest = Math.max(largest, length)
  })
  for (const piece of pieces) decoder.write(piece)
  await decoder.end(msMax)
  return { bytes, largest }
}

const inPieces = (bytes: Buffer, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size))

test.each(encodings)('An answer in %s says its usage, in whatever pieces it comes', async (name, encode) => {
  const bytes = encode(Buffer.from(answer))
  for (const size of [1, 7, bytes.length]) {
    expect(await used(name, 'application/json', inPieces(bytes, size))).toEqual([3, 4, 'reported'])
  }
})

test.each(encodings)('A stream in %s that breaks off is read as far as it came', async (name, _, open) => {
  const encoder = open()
  const pieces: Buffer[] = []
  for (const text of [...Array.from({ length: 20 }, () => word), event({ choices: [], usage })]) {
    encoder.write(text)
    await once(encoder, 'readable')
    pieces.push(encoder.read())
  }
  encoder.destroy()
  expect(await used(name, 'text/event-stream', pieces)).toEqual([3, 4, 'reported'])
  expect(await used(name, 'text/event-stream', pieces.slice(0, 20))).toEqual([100, 34, 'counted'])
  expect(await used(name, 'text/event-stream', pieces.slice(0, 7))).toEqual([100, 12, 'counted'])
})

test.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, br', 'compress', 'constructor'])(
  'An answer that is no %s, or in an encoding that is none, counts with all its bytes',
  async (name) => {
    const bytes = Buffer.from(answer.repeat(2).slice(0, 600))
    expect(await used(name, 'application/json', inPieces(bytes, 100))).toEqual([100, 200, 'counted'])
  },
)

test('An answer without a body is over at once', async () => {
  expect(await decoded('gzip', [])).toEqual({ bytes: 0, largest: 0 })
})

test.each(encodings)('A bomb in %s is given up after a megabyte', async (name, encode) => {
  const bomb = encode(Buffer.alloc(32 * mebibyte, 'x'))
  const { bytes, largest } = await decoded(name, inPieces(bomb, 65_536))
  expect(bytes).toBeGreaterThanOrEqual(mebibyte)
  // A bomb of 1:1000 at worst brings some pieces more; none holds the loop.
  expect([bytes < 4 * mebibyte, largest <= 65_536]).toEqual([true, true])
})

test('A window beyond what HTTP allows takes no memory', async () => {
  const params = { [constants.ZSTD_c_windowLog]: 24 }
  const bytes = zstdCompressSync(randomBytes(10 * mebibyte), { params })
  expect(await decoded('zstd', [bytes])).toEqual({ bytes: 0, largest: 0 })
})

test('No more than 64 MiB of an answer are read', async () => {
  const block = () => Buffer.concat([randomBytes(32_768), Buffer.alloc(mebibyte - 32_768)])
  const whole = (blocks: number) => zstdCompressSync(Buffer.concat(Array.from({ length: blocks }, block)))
  expect((await decoded('zstd', [whole(60)])).bytes).toBe(60 * mebibyte)
  const { bytes } = await decoded('zstd', [whole(70)])
  expect([bytes > 63 * mebibyte, bytes < 65 * mebibyte]).toEqual([true, true])
})

test('What waits is bounded, for an answer and for all of them, and is given back when they are over', async () => {
  const some = gzipSync(randomBytes(15 * mebibyte), { level: 0 })
  const open = () => {
    const read = { bytes: 0 }
    const decoder = decodeAnswer('gzip', ({ length }) => {
      read.bytes += length
    })
    return { read, decoder }
  }
  const beyond = open()
  beyond.decoder.write(some)
  beyond.decoder.write(some)
  await beyond.decoder.end()
  expect(beyond.read.bytes).toBe(0)
  for (let round = 0; round < 2; round += 1) {
    const all = Array.from({ length: 5 }, open)
    for (const { decoder } of all) decoder.write(some)
    await Promise.all(all.map(({ decoder }) => decoder.end()))
    const whole = 15 * mebibyte
    expect(all.map(({ read }) => read.bytes)).toEqual([whole, whole, whole, whole, 0])
  }
})

test('The end is not waited for longer than it may take', async () => {
  const some = gzipSync(randomBytes(15 * mebibyte))
  expect((await decoded('gzip', [some], 1)).bytes).toBeLessThan(15 * mebibyte)
})
