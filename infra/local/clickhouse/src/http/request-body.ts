import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { notImplemented, serverException, toServerException } from '../engine/exception.ts'

/** Bound of an upload, which is a file in the data directory until it is inserted. */
const bodyBytesMax = 8 * 1024 ** 3

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** Compressions that Node lacks and the engine has. */
const engineDecodings = new Set(['lz4', 'xz', 'bz2', 'snappy'])

/** The request's encoding, if the engine must undo it. */
export function engineDecoding(request: IncomingMessage): string | undefined {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  return engineDecodings.has(encoding) ? encoding : undefined
}

async function* bounded(source: Readable): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  // The stream stays open when reading stops early: the answer with the reason goes out on the same socket.
  for await (const chunk of source.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes > bodyBytesMax)
      throw serverException(229, `Request body is larger than ${bodyBytesMax} bytes; send it in parts`)
    yield chunk
  }
}

/** The body's bytes, decompressed as the request declares, unless the engine must do it. */
export async function* readBody(request: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding === 'identity' || encoding === '' || engineDecodings.has(encoding)) return yield* bounded(request)
  const decoder = decoders[encoding]?.()
  if (decoder === undefined) throw notImplemented(`Content-Encoding: ${encoding}`)
  request.pipe(decoder)
  request.once('close', () => request.complete || decoder.destroy(new Error('the client disconnected')))
  try {
    yield* bounded(decoder)
  } catch (error) {
    const known = toServerException(error)
    throw known.clickhouseCode === 1002
      ? serverException(271, `Cannot decompress the request (${known.message})`)
      : known
  }
}

/** The beginning of a body, and what is left of it. */
export interface Body {
  readonly head: Buffer
  readonly ended: boolean
  readonly rest: AsyncGenerator<Buffer, void, undefined>
}

/** Reads on until the head has this many bytes or the body ends. */
export async function readHead(body: Body, bytes: number): Promise<Body> {
  const chunks = [body.head]
  let length = body.head.length
  while (length < bytes) {
    const step = await body.rest.next()
    if (step.done) return { head: Buffer.concat(chunks), ended: true, rest: body.rest }
    chunks.push(step.value)
    length += step.value.length
  }
  return { head: Buffer.concat(chunks), ended: body.ended, rest: body.rest }
}
