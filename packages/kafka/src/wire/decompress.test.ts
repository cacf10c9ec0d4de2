import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compressFrameSync } from 'lz4-napi'
import { compressSync } from 'snappy'
import { expect, test } from 'vitest'
import { decompress } from './decompress.ts'

const text = Buffer.from('weir '.repeat(14_000))

/** Bytes written as hex, and numbers of bytes that are `ff`. */
const hex = (...parts: readonly (string | number)[]) =>
  Buffer.from(parts.map((part) => (typeof part === 'number' ? 'ff'.repeat(part) : part)).join(''), 'hex')

/** The frame of Kafka's Java library, with blocks of so many bytes. */
function javaSnappy(bytes: Buffer, blockBytes = 32 * 1024): Buffer {
  const parts: Buffer[] = [hex('82534e41505059000000000100000001')]
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = compressSync(bytes.subarray(at, at + blockBytes))
    const size = Buffer.alloc(4)
    size.writeUInt32BE(block.length)
    parts.push(size, block)
  }
  return Buffer.concat(parts)
}

const zeros = Buffer.alloc(40 * 1024 * 1024)
const [gzip, snappy, lz4, zstd] = [1, 2, 3, 4]

test.each([
  ['gzip', gzip, gzipSync(text)],
  ['Snappy in one block', snappy, compressSync(text)],
  ["Snappy in Java's frame", snappy, javaSnappy(text)],
  ['LZ4', lz4, compressFrameSync(text)],
  ['LZ4 with checksums', lz4, compressFrameSync(text, { contentChecksum: true, blockChecksums: true })],
  [
    'LZ4 with linked blocks, and without the size of its content',
    lz4,
    hex('04224d184040c00f0100005f77656972200500', 256, 'e35065697220771b0000000f', 19, '6950776569722000000000'),
  ],
  ['zstd', zstd, zstdCompressSync(text)],
])('a batch in %s is read', async (_, attributes, bytes) => {
  expect((await decompress(bytes, attributes)).equals(text)).toBe(true)
})

test.each([
  ['gzip', gzip, () => gzipSync(zeros)],
  ['Snappy', snappy, () => compressSync(zeros)],
  ["Snappy in Java's frame", snappy, () => javaSnappy(zeros, 1024 * 1024)],
  ['LZ4', lz4, () => compressFrameSync(zeros)],
  ['LZ4 that only claims to be so large', lz4, () => hex('04224d184840', '00000000ffff0000', '00', '00000000')],
  ['zstd', zstd, () => zstdCompressSync(zeros)],
])('%s that becomes more than a batch may have is refused before it takes the memory', async (_, attributes, make) => {
  const bytes = make()
  const before = process.memoryUsage().rss
  await expect(decompress(bytes, attributes)).rejects.toThrow(/larger than|exceeds 33554432 bytes/)
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024)
})

test.each([
  ['gzip', gzip],
  ['snappy', snappy],
  ['lz4', lz4],
  ['zstd', zstd],
])('bytes that are no %s are refused with its name', async (name, attributes) => {
  const strange = [Buffer.from('this is no frame of anything'), Buffer.alloc(40, 0x82)]
  for (const one of strange) await expect(decompress(one, attributes)).rejects.toThrow(`by ${name} cannot be read`)
})

test('a compression that Kafka does not have yet is named by its number', async () => {
  await expect(decompress(text, 5)).rejects.toThrow('number 5, is unknown')
})
