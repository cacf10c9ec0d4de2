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

  constructor(request: IncomingMessage) {
    super({ highWaterMark: 65_536 })
    this.#request = request
    request.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length
      if (!this.destroyed && !this.push(chunk)) request.pause()
    })
    request.on('end', () => {
      if (!this.destroyed) this.push(null)
    })
    request.pause()
  }

  override _read(): void {
    this.#request.resume()
  }

  /** What still comes is read and forgotten, so that the client can finish and see its answer. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.resume()
    done(error)
  }
}

/** The whole body, or undefined once it is longer than `bytesMax`. Never settles for a client that goes away. */
export function readWhole(request: IncomingMessage, bytesMax: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.resolve(undefined)
  return new Promise((done) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= bytesMax) chunks.push(chunk)
      else done(undefined)
    })
    request.on('end', () => done(Buffer.concat(chunks)))
  })
}
