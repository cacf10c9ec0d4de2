import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Connection } from './connection.ts'
import { loadNative } from './native.ts'

/** What every answer's headers say about the server. */
export interface ServerFacts {
  readonly version: string
  readonly timezone: string
}

/** The engine on its one data directory. */
export interface Engine {
  readonly facts: ServerFacts
  /** Opens a connection: settings, parameters, temporary tables and the current database end with it. */
  connect(settings?: Readonly<Record<string, string>>): Connection
  /** Closes the directory. No connection may be in use any more. */
  close(): void
}

/**
 * Opens the directory for this process alone. Throws when another process holds it; the engine itself then writes the
 * reason to stderr.
 */
export async function openEngine(path: string, usersFile?: string): Promise<Engine> {
  mkdirSync(path, { recursive: true })
  const native = loadNative()
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
  return { facts: { version, timezone }, connect, close: () => keeper.close() }
}
