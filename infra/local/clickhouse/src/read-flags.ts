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

/** The command line, or what is wrong with it. */
export function readFlags(
  args: readonly string[],
): { kind: 'flags'; flags: Flags } | { kind: 'wrong'; problem: string } {
  const options = {
    port: { type: 'string', default: '8123' },
    host: { type: 'string', default: '127.0.0.1' },
    path: { type: 'string' },
    'password-file': { type: 'string' },
    'users-file': { type: 'string' },
  } as const
  try {
    const { values } = parseArgs({ args: [...args], options })
    const port = Number(values.port)
    if (!/^\d+$/.test(values.port) || port > 65_535)
      return { kind: 'wrong', problem: `--port ${values.port} is no port` }
    if (!values.path) return { kind: 'wrong', problem: '--path is missing' }
    const files = { passwordFile: values['password-file'], usersFile: values['users-file'] }
    const flags = { port, host: values.host, path: values.path, ...files }
    return { kind: 'flags', flags }
  } catch (error) {
    return { kind: 'wrong', problem: error instanceof Error ? error.message : String(error) }
  }
}
