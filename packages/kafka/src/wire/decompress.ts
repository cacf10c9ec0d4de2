import { AsyncLocalStorage } from 'node:async_hooks'
import { promisify } from 'node:util'
import { unzip, zstdDecompress } from 'node:zlib'
import { decompressFrame } from 'lz4-napi'
import { uncompress } from 'snappy'
import { ByteReader } from './byte-reader.ts'

/**
 * Twice the largest batch that infra/kafka/topics.json allows, which is of the policy. A batch that grows beyond it is
 * none of Weir's, and could take all memory of a process.
 */
const batchBytesMax = 32 * 1024 * 1024

/** Bytes that compressed batches of one fetch may still become. */
const rooms = new AsyncLocalStorage<{ left: number }>()

/**
 * Runs a fetch whose compressed batches become about as many bytes as it may bring of others: the rest of a partition
 * is left to the next fetch. Its first batch is always read.
 */
export const fetchWithin = <T>(bytesMax: number, fetch: () => Promise<T>): Promise<T> =>
  rooms.run({ left: bytesMax }, fetch)

/** Whether the fetch under way has brought as many bytes as it may. */
export const isFetchFull = (): boolean => (rooms.getStore()?.left ?? 1) <= 0

const tooLarge = () => new Error(`the decompressed data exceeds ${batchBytesMax} bytes`)

type Decompress = (bytes: Buffer) => Promise<Buffer>

const [gunzip, unzstd] = [promisify(unzip), promisify(zstdDecompress)]
const bounded = { maxOutputLength: batchBytesMax }

/** A block of Snappy begins with the size of its content. */
async function readSnappyBlock(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  if (new ByteReader(bytes).unsignedVarint() > bytesMax) throw tooLarge()
  return Buffer.from(await uncompress(bytes, { asBuffer: true }))
}

/** The frame of Kafka's own Java library: this, two versions, then blocks behind their sizes. */
const javaMagic = Buffer.from('\x82SNAPPY\0', 'latin1')
const javaBlocksAt = 16

/** Snappy of Java, which brokers write, is framed; that of librdkafka is one block. */
async function readSnappy(bytes: Buffer): Promise<Buffer> {
  if (!bytes.subarray(0, javaMagic.length).equals(javaMagic)) return readSnappyBlock(bytes, batchBytesMax)
  const blocks: Buffer[] = []
  let left = batchBytesMax
  for (let at = javaBlocksAt; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at)
    const block = await readSnappyBlock(bytes.subarray(at + 4, end), left)
    blocks.push(block)
    left -= block.length
    at = end
  }
  return Buffer.concat(blocks)
}

/** Flags of an LZ4 frame, in its fifth byte. */
const lz4 = { hasDictionary: 1, hasSize: 8, hasBlockSums: 16 } as const
/** LZ4 makes at most so many bytes of one. */
const lz4RatioMax = 255

/** Returns the most bytes that the blocks of an LZ4 frame can become: the library itself has no bound. */
function lz4BytesMax(bytes: Buffer): number {
  const [flags = 0, blockForm = 0] = bytes.subarray(4)
  const claimed = (flags & lz4.hasSize) > 0 ? Number(bytes.readBigUInt64LE(6)) : 0
  const blockMax = 1 << (8 + 2 * ((blockForm >> 4) & 7))
  const sumBytes = (flags & lz4.hasBlockSums) > 0 ? 4 : 0
  let at = 7 + ((flags & lz4.hasSize) > 0 ? 8 : 0) + ((flags & lz4.hasDictionary) > 0 ? 4 : 0)
  let bytesMax = 0
  while (at + 4 <= bytes.length) {
    const size = bytes.readUInt32LE(at) & 0x7fffffff
    if (size === 0) break
    bytesMax += Math.min(blockMax, size * lz4RatioMax)
    at += 4 + size + sumBytes
  }
  return Math.max(claimed, bytesMax)
}

async function readLz4(bytes: Buffer): Promise<Buffer> {
  if (lz4BytesMax(bytes) > batchBytesMax) throw tooLarge()
  return decompressFrame(bytes)
}

/** By their numbers in a batch's attributes. */
const codecs: readonly (readonly [name: string, decompress: Decompress])[] = [
  ['gzip', (bytes) => gunzip(bytes, bounded)],
  ['snappy', readSnappy],
  ['lz4', readLz4],
  ['zstd', (bytes) => unzstd(bytes, bounded)],
]
const codecMask = 7

/** Whether a batch with these attributes is compressed. */
export const isCompressed = (attributes: number): boolean => (attributes & codecMask) > 0

/** Decompresses a batch's records. Rejects with the reason when they cannot be, or become too many bytes. */
export async function decompress(bytes: Buffer, attributes: number): Promise<Buffer> {
  const number = attributes & codecMask
  const [name, read] = codecs[number - 1] ?? []
  if (read === undefined) throw new Error(`its compression, number ${number}, is unknown`)
  try {
    const found = await read(bytes)
    const room = rooms.getStore()
    if (room !== undefined) room.left -= found.length
    return found
  } catch (error) {
    throw new Error(`its compression by ${name} cannot be read: ${error instanceof Error ? error.message : error}`)
  }
}
