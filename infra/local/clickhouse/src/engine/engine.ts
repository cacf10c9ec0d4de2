import { mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { toServerException } from './exception.ts'
import { loadNative, type Native, type NativeConnection, type NativeStream } from './native.ts'

/** A part of a result, formatted on its own. */
export interface ResultChunk {
  readonly bytes: Buffer
  readonly rows: number
}

/** The engine wants data after an INSERT; a line break is none, and the statement brings its own. */
const noData = Buffer.from('\n')

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const rethrow = (error: unknown): never => {
  throw toServerException(error)
}

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
    const result = await this.#native.QueryAsyncConnection(this.#handle, sql, format).catch(rethrow)
    return { bytes: toBuffer(result.bytes), rows: result.rowsRead, elapsedMs: result.elapsed * 1_000 }
  }

  /**
   * Runs an INSERT whose rows come from a query or a file. Only this call returns how many rows and bytes were written,
   * those of materialized views included.
   */
  async insert(sql: string): Promise<{ rows: number; bytes: number; elapsedMs: number }> {
    const result = await this.#native.InsertRawAsyncConnection(this.#handle, sql, noData, false).catch(rethrow)
    return { rows: result.rowsWritten, bytes: result.bytesWritten, elapsedMs: result.elapsed * 1_000 }
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
      rethrow(error)
    } finally {
      if (open !== undefined) this.#native.StreamCancel(open)
    }
  }

  /** Closes the connection, with its settings, parameters and temporary tables. Nothing may be running on it. */
  [Symbol.dispose](): void {
    this.#native.CloseConnection(this.#handle)
  }
}

/** What every answer's headers say about the server. */
export interface ServerFacts {
  readonly version: string
  readonly timezone: string
}

/**
 * Opens the directory for this process alone. Throws when another process holds it; the engine itself then writes the
 * reason to stderr.
 */
export async function openEngine(path: string, usersFile?: string) {
  mkdirSync(path, { recursive: true })
  const native = loadNative()
  /** Opens a connection: settings, parameters, temporary tables and the current database end with it. */
  const connect = (settings: Readonly<Record<string, string>> = {}) =>
    new Connection(
      native,
      native.CreateConnection(
        path,
        Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
      ),
    )
  // The directory is open as long as one connection is: this one lasts as long as the server. The first one's rights
  // hold for all.
  const rights = usersFile ?? fileURLToPath(new URL('../../users.xml', import.meta.url))
  const keeper = connect({ 'config-file': rights, users_config: rights }) // the engine reads the second only with the first
  const { bytes } = await keeper.query('SELECT version(), serverTimezone()', 'TabSeparatedRaw')
  const [version = '', timezone = 'UTC'] = bytes.toString().trimEnd().split('\t')
  const facts: ServerFacts = { version, timezone }
  return {
    facts,
    connect,
    /** Closes the directory. No connection may be in use any more. */
    close: () => keeper[Symbol.dispose](),
  }
}

/** The engine on its one data directory. */
export type Engine = Awaited<ReturnType<typeof openEngine>>

/**
 * The process that holds this data directory open, if there is one and the system can tell (Linux). The engine's own
 * lock is what really keeps a second process out; this only finds the words for it before the engine is loaded.
 */
export function directoryHolder(path: string): number | undefined {
  try {
    const status = realpathSync(join(path, 'status'))
    const pid = Number(/^PID: (\d+)$/m.exec(readFileSync(status, 'utf8'))?.[1])
    const files = `/proc/${pid}/fd`
    return readdirSync(files).some((fd) => isLink(join(files, fd), status)) ? pid : undefined
  } catch {
    return undefined
  }
}

function isLink(link: string, target: string): boolean {
  try {
    return readlinkSync(link) === target
  } catch {
    return false // Closed since it was listed.
  }
}
