import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ReadyLine } from '../up/ready-line.ts'

/** What a `weir up` on the data directory says of itself: one text by name, undefined where none is or was. */
export function readStateFile(
  dataDir: string,
  name: Extract<
    keyof ReadyLine,
    'redis' | `kafka${string}` | 'clickhouse' | 'console' | 'adminToken' | 'upstream' | 'receiver'
  >,
): string | undefined {
  try {
    const state: unknown = JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8'))
    const found: unknown =
      typeof state === 'object' && state !== null ? Object.entries(state).find(([key]) => key === name)?.[1] : undefined
    return typeof found === 'string' ? found : undefined
  } catch {
    return undefined
  }
}
