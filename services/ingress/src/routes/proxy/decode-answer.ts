import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'

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

// One that breaks off has no end, and is read as far as it came.
const zlib = { finishFlush: constants.Z_SYNC_FLUSH }
const brotli = { finishFlush: constants.BROTLI_OPERATION_FLUSH }
/** Larger windows are not for HTTP (RFC 9659). */
const zstd = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

type Open = (first: number) => ReturnType<typeof createGunzip>
const gunzip: Open = () => createGunzip(zlib)
const decoders: ReadonlyMap<string, Open> = new Map<string, Open>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  // Some send it without the header of zlib.
  ['deflate', (first) => ((first & 0x0f) === 8 ? createInflate(zlib) : createInflateRaw(zlib))],
  ['br', () => createBrotliDecompress(brotli)],
  ['zstd', () => createZstdDecompress(zstd)],
])

let waitingInAll = 0

/**
 * Decodes an answer behind its client, by threads of Node's pool. What cannot be decoded, or is beyond a bound, is read
 * as far as it was decoded by then. Never throws.
 */
export class AnswerDecoder {
  readonly #encoding: string
  readonly #read: (piece: Buffer) => void
  readonly #over = Promise.withResolvers<void>()
  #decoder: ReturnType<Open> | undefined
  #isOver = false
  #given = 0
  #waiting = 0
  #decoded = 0
  #timer: NodeJS.Timeout | undefined

  constructor(encoding: string, read: (piece: Buffer) => void) {
    this.#encoding = encoding
    this.#read = read
  }

  write(chunk: Buffer): void {
    if (this.#isOver || this.#timer !== undefined) return
    this.#decoder ??= this.#open(chunk[0] ?? 0)
    this.#given += chunk.length
    this.#decoder?.write(chunk)
    this.#check()
  }

  /** No more comes. Resolves once all that came is read, or is given up. */
  end(msMax: number = endMsMax): Promise<void> {
    if (this.#decoder === undefined || this.#isOver) this.#finish()
    else this.#timer = setTimeout(() => this.#finish(), msMax).unref()
    this.#decoder?.end()
    return this.#over.promise
  }

  #open(first: number): ReturnType<Open> | undefined {
    const finish = () => this.#finish()
    return decoders
      .get(this.#encoding)?.(first)
      .on('data', (piece: Buffer) => {
        if (this.#isOver) return
        this.#decoded += piece.length
        this.#read(piece)
        this.#check()
      })
      .on('end', finish)
      .on('error', finish)
  }

  #check(): void {
    const { bytesWritten: taken = this.#given } = this.#decoder ?? {}
    const waiting = this.#given - taken
    waitingInAll += waiting - this.#waiting
    this.#waiting = waiting
    const decodedMax = Math.min(decodedBytesMax, Math.max(smallBytes, taken * ratioMax))
    const isFull = waiting > waitingBytesMax / 4 || waitingInAll > waitingBytesMax
    if (this.#decoder === undefined || isFull || this.#decoded > decodedMax) this.#finish()
  }

  #finish(): void {
    clearTimeout(this.#timer)
    this.#isOver = true
    this.#decoder?.destroy()
    waitingInAll -= this.#waiting
    this.#waiting = 0
    this.#over.resolve()
  }
}
