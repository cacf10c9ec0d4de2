import { parseArgs } from 'node:util'

export interface Flags {
  readonly port: number
  readonly host: string
  readonly path: string
  readonly passwordFile: string | undefined
  /** Says what the engine's user may do. */
  readonly usersFile: string | undefined
}

export const usage =
  'usage: main.ts --port PORT --path DIRECTORY [--host ADDRESS] [--password-file FILE] [--users-file FILE]'

/** Reads the command line. Throws an error that says what is wrong with it. */
export function readFlags(args: readonly string[]): Flags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '8123' },
      host: { type: 'string', default: '127.0.0.1' },
      path: { type: 'string' },
      'password-file': { type: 'string' },
      'users-file': { type: 'string' },
    },
  })
  const { host, path, 'password-file': passwordFile, 'users-file': usersFile } = values
  const port = Number(values.port)
  if (!/^\d+$/.test(values.port) || port > 65_535) throw new Error(`--port ${values.port} is no port`)
  if (!path) throw new Error('--path is missing')
  return { port, host, path, passwordFile, usersFile }
}
