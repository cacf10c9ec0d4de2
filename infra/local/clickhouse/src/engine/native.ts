import { createRequire } from 'node:module'

/** What one finished query gives back: the formatted bytes and the rows in them. */
export interface NativeResult {
  readonly bytes: Uint8Array
  /** Seconds. */
  readonly elapsed: number
  readonly rowsRead: number
  readonly bytesRead: number
}

export interface NativeInsertResult {
  /** Seconds. */
  readonly elapsed: number
  /** Rows and bytes written to the table and to everything its materialized views feed. */
  readonly rowsWritten: number
  readonly bytesWritten: number
}

export interface NativeChunk {
  readonly bytes: Uint8Array
  readonly numRows: number
  readonly done: boolean
}

/** Handles are the engine's own; they are only ever handed back to it. */
export type NativeConnection = object
export type NativeStream = object

/**
 * The functions of chdb's addon that are used here. The package's own `Session` is left aside for one reason: its
 * `close` waits for every query of the process, so that one slow query would keep the connections of all later ones
 * open.
 */
export interface Native {
  /** Synchronous, under a millisecond once the directory is open. `args` are settings in command-line form. */
  CreateConnection(path: string, args: readonly string[]): NativeConnection
  /** Nothing may run on the connection any more, or the engine of the whole process aborts. */
  CloseConnection(connection: NativeConnection): void
  QueryAsyncConnection(connection: NativeConnection, sql: string, format: string): Promise<NativeResult>
  InsertRawAsyncConnection(
    connection: NativeConnection,
    sql: string,
    data: Uint8Array,
    countLines: boolean,
  ): Promise<NativeInsertResult>
  /** Returns at once; what is wrong with the query shows at the first fetch. */
  StreamQuery(connection: NativeConnection, sql: string, format: string): NativeStream
  StreamFetch(stream: NativeStream): Promise<NativeChunk>
  /** No fetch may be under way. */
  StreamCancel(stream: NativeStream): void
}

/** Loads the addon and with it the engine: about 0.1 s and 200 MB of address space. */
export function loadNative(): Native {
  const chdb = createRequire(import.meta.url).resolve('chdb')
  const loader: { loadNative(): Native } = createRequire(chdb)('./dist/loader.js')
  return loader.loadNative()
}
