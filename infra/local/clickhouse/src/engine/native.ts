import { createRequire } from 'node:module'

/** The engine's handle of a connection, which is only ever handed back to it. */
export type NativeConnection = object
/** The engine's handle of a result that is being computed. */
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
  QueryAsyncConnection(
    connection: NativeConnection,
    sql: string,
    format: string,
  ): Promise<{ readonly bytes: Uint8Array; readonly rowsRead: number; readonly elapsed: number }>
  InsertRawAsyncConnection(
    connection: NativeConnection,
    sql: string,
    data: Uint8Array,
    countLines: boolean,
  ): Promise<{ readonly rowsWritten: number; readonly bytesWritten: number; readonly elapsed: number }>
  /** Returns immediately; an error of the query is thrown by the first fetch. */
  StreamQuery(connection: NativeConnection, sql: string, format: string): NativeStream
  StreamFetch(
    stream: NativeStream,
  ): Promise<{ readonly bytes: Uint8Array; readonly numRows: number; readonly done: boolean }>
  /** No fetch may be under way. */
  StreamCancel(stream: NativeStream): void
}

/** The installation has no engine for this system. */
export class EngineMissing extends Error {}

/** Loads the addon and with it the engine: about 0.1 s and 200 MB of address space. */
export function loadNative(): Native {
  const chdb = createRequire(import.meta.url).resolve('chdb')
  const loader: { loadNative(): Native } = createRequire(chdb)('./dist/loader.js')
  try {
    return loader.loadNative()
  } catch (cause) {
    throw new EngineMissing(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}
