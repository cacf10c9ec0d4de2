import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import type { ReadyLine } from './up/ready-line.ts'

/** The state file of the last `weir up` on the data directory; nothing of it where there is none. */
function readState(dataDir: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8')) ?? {}
  } catch {
    return {}
  }
}

/** Returns one text of the state file of a `weir up` on the data directory; undefined where there is none. */
export function readStateFile(
  dataDir: string,
  name: Extract<
    keyof ReadyLine,
    | ('redis' | `kafka${string}` | 'clickhouse' | 'api' | 'console' | 'adminToken' | 'upstream' | 'receiver')
    | ('ingress' | 'grpc' | `demo${string}`)
  >,
): string | undefined {
  const found = readState(dataDir)[name]
  return typeof found === 'string' ? found : undefined
}

/** Returns the process id of the last `weir up` on the data directory; undefined where there was none. */
export function readLauncher(dataDir: string): number | undefined {
  const { launcher } = readState(dataDir)
  return typeof launcher === 'number' ? launcher : undefined
}

/** Returns the policy file that the last `weir up` was started with; undefined where there was none. */
export function readPolicyPath(dataDir: string): string | undefined {
  const { policy } = readState(dataDir)
  return typeof policy === 'string' ? policy : undefined
}

/** Returns the names of the variables that the last `weir up` was started with; undefined where there was none. */
export function readVariables(dataDir: string): readonly string[] | undefined {
  const { variables } = readState(dataDir)
  return Array.isArray(variables) ? variables : undefined
}

/** Returns the error of a command for which neither the environment nor a `weir up` names a server. */
export function nothingToAsk(server: string, variables: string, dataDir: string): WeirError {
  const what = `No ${server} to ask: ${variables} not set, and no weir up has run on ${dataDir}`
  return new WeirError(
    'CONFIG_INVALID',
    `${what}. Set what is missing, start one, or name its directory with --data DIR.`,
  )
}
