import { toServerException } from './exception.ts'
import type { Native, NativeChunk, NativeConnection, NativeStream } from './native.ts'

/** A whole result. */
export interface QueryResult {
  readonly bytes: Buffer
  readonly rows: number
  readonly elapsedMs: number
}

export interface InsertResult {
  /** Rows and bytes written, those of materialized views included. */
  readonly rows: number
  readonly bytes: number
  readonly elapsedMs: number
}

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

  async query(sql: string, format: string): Promise<QueryResult> {
    try {
      const result = await this.#native.QueryAsyncConnection(this.#handle, sql, format)
      return { bytes: toBuffer(result.bytes), rows: result.rowsRead, elapsedMs: result.elapsed * 1_000 }
    } catch (error) {
      throw toServerException(error)
    }
  }

  /** An INSERT whose rows come from a query or a file: the only call that tells how many rows were written. */
  async insert(sql: string): Promise<InsertResult> {
    try {
      const result = await this.#native.InsertRawAsyncConnection(this.#handle, sql, noData, false)
      return { rows: result.rowsWritten, bytes: result.bytesWritten, elapsedMs: result.elapsed * 1_000 }
    } catch (error) {
      throw toServerException(error)
    }
  }

  /** The result as it is computed, a block at a time. Leaving the loop early ends the query. */
  async *stream(sql: string, format: string): AsyncGenerator<ResultChunk, void, undefined> {
    let open = false
    try {
      const stream = this.#native.StreamQuery(this.#handle, sql, format)
      open = true
      try {
        for (;;) {
          const chunk = await this.#fetch(stream, () => {
            open = false
          })
          if (chunk.done) return
          yield { bytes: toBuffer(chunk.bytes), rows: chunk.numRows }
        }
      } finally {
        if (open) this.#native.StreamCancel(stream)
      }
    } catch (error) {
      throw toServerException(error)
    }
  }

  /** A stream that ended or failed is gone already; cancelling it again would be an error of ours. */
  async #fetch(stream: NativeStream, gone: () => void): Promise<NativeChunk> {
    try {
      const chunk = await this.#native.StreamFetch(stream)
      if (chunk.done) gone()
      return chunk
    } catch (error) {
      gone()
      throw error
    }
  }

  /** Nothing may be running on it. */
  close(): void {
    this.#native.CloseConnection(this.#handle)
  }
}
