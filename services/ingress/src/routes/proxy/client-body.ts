import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/** Whether anything follows the head. Node's parser has refused requests whose headers disagree about that. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'

/**
 * A client's body on its way to the upstream, read only as fast as the upstream takes it. A stream of its own, because
 * undici destroys what it sends when an upstream answers early, and the request destroyed is the client's connection.
 */
export class ClientBody extends Readable {
  /** What has come so far. */
  bytes = 0
  readonly #request: IncomingMessage
  #isHeldBack = false
  #begin: (() => void) | undefined

  constructor(request: IncomingMessage) {
    super({ highWaterMark: 65_536 })
    this.#request = request
    request.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length
      if (!this.destroyed && !this.push(chunk)) {
        this.#isHeldBack = true
        request.pause()
      }
      this.#hasBegun()
    })
    request.on('end', () => {
      if (!this.destroyed) this.push(null)
      this.#hasBegun()
    })
    request.pause()
  }

  get hasAllCome(): boolean {
    return this.#request.complete
  }

  /** Runs `then` when the first of it has come, which mostly came along with the head. */
  whenBegun(then: () => void): void {
    if (this.#request.readableLength > 0 || this.hasAllCome) {
      then()
      return
    }
    this.#begin = then
    this.#request.resume()
  }

  #hasBegun(): void {
    const begin = this.#begin
    if (begin === undefined) return
    this.#begin = undefined
    // Nothing more is read for one that then waits for a slot.
    this.#request.pause()
    begin()
  }

  /** Whether the upstream, not the client, has been the slower one at any time since this was asked last. */
  wasHeldBack(): boolean {
    const was = this.#isHeldBack
    this.#isHeldBack = this.#request.isPaused()
    return was
  }

  override _read(): void {
    this.#request.resume()
  }

  /** What still comes is read and dropped, so that the client can finish and see its answer. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.resume()
    done(error)
  }
}

/**
 * The whole body, or undefined once it is longer than `bytesMax`, or `scan` does not want more. Never settles for a
 * client that goes away. `scan` gets each piece as it comes, and others their turn before the next.
 */
export function readWhole(
  request: IncomingMessage,
  bytesMax: number,
  scan?: (chunk: Buffer) => boolean,
): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.resolve(undefined)
  return new Promise((done) => {
    let chunks: Buffer[] = []
    let bytes = 0
    // What still comes is dropped, and nothing of what came is kept.
    const end = (body: Buffer | undefined) => {
      chunks = []
      request.off('data', take)
      request.resume()
      done(body)
    }
    const take = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bytesMax || scan?.(chunk) === false) {
        end(undefined)
        return
      }
      chunks.push(chunk)
      if (scan === undefined) return
      request.pause()
      setImmediate(() => request.resume())
    }
    request.on('data', take)
    request.on('end', () => end(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
  })
}

/**
 * Watches the rate of bodies that are still on their way. All share one timer, which runs only while there are any: a
 * body that came whole with its request costs nothing. There are as many as requests with a connection to an upstream.
 */
export function createUploadWatch(bytesPerSecondMin: number, everyMs: number) {
  /** With the bytes received at the last check; -1 before the first one. */
  const uploads = new Map<ClientBody, { readonly tooSlow: () => void; bytes: number }>()
  const bytesMin = (bytesPerSecondMin * everyMs) / 1_000
  let timer: NodeJS.Timeout | undefined

  const check = () => {
    for (const [body, upload] of uploads) {
      const isSlow = upload.bytes >= 0 && body.bytes - upload.bytes < bytesMin
      upload.bytes = body.bytes
      if (body.wasHeldBack() || !isSlow || body.hasAllCome) continue
      uploads.delete(body)
      upload.tooSlow()
    }
    if (uploads.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    /** Calls `tooSlow` once, if less than that rate comes between two checks although the upstream waits for more. */
    add(body: ClientBody, tooSlow: () => void): void {
      if (bytesPerSecondMin === 0 || body.hasAllCome) return
      uploads.set(body, { tooSlow, bytes: -1 })
      timer ??= setInterval(check, everyMs).unref()
    },
    remove: (body: ClientBody): void => void uploads.delete(body),
  }
}
