import * as zlib from 'node:zlib'

/** Encoded bytes that wait in this process: what upstreams bring faster than it decodes. Of one answer a quarter. */
const waitingBytesMax = 64 * 1_048_576
/** Text shrinks to a tenth, events that repeat to a fiftieth; a bomb to a thousandth. */
const ratioMax = 100
/** No bomb, however little it came as. */
const smallBytes = 1_048_576
/** More than a supplier's largest batch of embeddings. It takes up to a second of the loop, in pieces of 16 KiB. */
const decodedBytesMax = 64 * 1_048_576
/** Behind the end of the answer, and so at a stop: all that may wait is decoded in less. */
const endMsMax = 2_000

/** One that breaks off has no end, and is read as far as it came. */
const cut = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
const decoders = new Map<string, (first: number) => zlib.Gunzip>([
  ['gzip', () => zlib.createGunzip(cut)],
  ['x-gzip', () => zlib.createGunzip(cut)],
  // Some send it without the header of zlib.
  ['deflate', (first) => ((first & 0x0f) === 8 ? zlib.createInflate(cut) : zlib.createInflateRaw(cut))],
  ['br', () => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH })],
  // Larger windows are not for HTTP (RFC 9659).
  ['zstd', () => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } })],
])

let waitingInAll = 0

/**
 * Decodes an answer behind its client, by threads of Node's pool. What cannot be decoded, or is beyond a bound, is read
 * as far as it was decoded by then. Never throws.
 */
export function decodeAnswer(encoding: string, read: (piece: Buffer) => void) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let decoder: zlib.Gunzip | undefined
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  let [given, waiting, decoded] = [0, 0, 0]

  const finish = () => {
    isOver = true
    clearTimeout(timer)
    decoder?.destroy()
    waitingInAll -= waiting
    waiting = 0
    resolve()
  }
  const check = ({ bytesWritten: taken }: zlib.Gunzip) => {
    waitingInAll += given - taken - waiting
    waiting = given - taken
    const isFull = waiting > waitingBytesMax / 4 || waitingInAll > waitingBytesMax
    if (isFull || decoded > Math.min(decodedBytesMax, Math.max(smallBytes, taken * ratioMax))) finish()
  }
  const open = (first = 0) => {
    const opened = decoders.get(encoding)?.(first)
    return opened
      ?.on('end', finish)
      .on('error', finish)
      .on('data', (piece: Buffer) => {
        decoded += piece.length
        read(piece)
        check(opened)
      })
  }

  return {
    write(chunk: Buffer): void {
      decoder ??= open(chunk[0])
      if (decoder === undefined || isOver || timer !== undefined) return
      given += chunk.length
      decoder.write(chunk)
      check(decoder)
    },
    /** No more comes. Resolves once all that came is read, or is given up: in 2 s at most. */
    end(msMax: number = endMsMax): Promise<void> {
      if (decoder === undefined) resolve()
      else if (!isOver) timer = setTimeout(finish, msMax).unref()
      decoder?.end()
      return promise
    },
  }
}
