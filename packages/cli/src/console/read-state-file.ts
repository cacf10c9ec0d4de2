import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import type { ReadyLine } from '../up/ready-line.ts'

/** Returns one text of the state file of a `weir up` on the data directory; undefined where there is none. */
export function readStateFile(
  dataDir: string,
  name: Extract<
    keyof ReadyLine,
    'redis' | `kafka${string}` | 'clickhouse' | 'console' | 'adminToken' | 'upstream' | 'receiver'
  >,
): string | undefined {
  try {
    const state: Readonly<Record<string, unknown>> | null = JSON.parse(
      readFileSync(join(dataDir, 'state.json'), 'utf8'),
    )
    const found = state?.[name]
    return typeof found === 'string' ? found : undefined
  } catch {
    return undefined
  }
}

/** Returns the error of a command for which neither the environment nor a `weir up` names a server. */
export function nothingToAsk(server: string, variables: string, dataDir: string): WeirError {
  const what = `No ${server} to ask: ${variables} not set, and no weir up has run on ${dataDir}`
  return new WeirError(
    'CONFIG_INVALID',
    `${what}. Set what is missing, start one, or name its directory with --data DIR.`,
  )
}
