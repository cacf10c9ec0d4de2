import { toServerException } from './exception.ts'
import type { Native, NativeConnection, NativeStream } from './native.ts'

/** A part of a result, formatted on its own. */
export interface ResultChunk {
  readonly bytes: Buffer
  readonly rows: number
}

/** The engine wants data after an INSERT; a line break is none, and the statement brings its own. */
const noData = Buffer.from('\n')

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** One connection to the engine, which runs one statement at a time. Every failure is a ServerException. */
export class Connection {
  readonly #native: Native
  readonly #handle: NativeConnection

  constructor(native: Native, handle: NativeConnection) {
    this.#native = native
    this.#handle = handle
  }

  /** Returns a whole result. */
  async query(sql: string, format: string): Promise<ResultChunk & { readonly elapsedMs: number }> {
    try {
      const result = await this.#native.QueryAsyncConnection(this.#handle, sql, format)
      return { bytes: toBuffer(result.bytes), rows: result.rowsRead, elapsedMs: result.elapsed * 1_000 }
    } catch (error) {
      throw toServerException(error)
    }
  }

  /**
   * Runs an INSERT whose rows come from a query or a file. Only this call returns how many rows and bytes were written,
   * those of materialized views included.
   */
  async insert(sql: string): Promise<{ rows: number; bytes: number; elapsedMs: number }> {
    try {
      const result = await this.#native.InsertRawAsyncConnection(this.#handle, sql, noData, false)
      return { rows: result.rowsWritten, bytes: result.bytesWritten, elapsedMs: result.elapsed * 1_000 }
    } catch (error) {
      throw toServerException(error)
    }
  }

  /** Yields the result as it is computed, a block at a time. Leaving the loop early ends the query. */
  async *stream(sql: string, format: string): AsyncGenerator<ResultChunk, void, undefined> {
    let open: NativeStream | undefined
    try {
      const stream = this.#native.StreamQuery(this.#handle, sql, format)
      for (;;) {
        // A stream that ended or failed is gone already; cancelling it again would be an error of ours.
        open = undefined
        const chunk = await this.#native.StreamFetch(stream)
        if (chunk.done) return
        open = stream
        yield { bytes: toBuffer(chunk.bytes), rows: chunk.numRows }
      }
    } catch (error) {
      throw toServerException(error)
    } finally {
      if (open !== undefined) this.#native.StreamCancel(open)
    }
  }

  /** Nothing may be running on it. */
  close(): void {
    this.#native.CloseConnection(this.#handle)
  }
}
