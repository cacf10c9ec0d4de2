import { spawnSync } from 'node:child_process'
import type { Environment } from '@weir/runtime/read-config.ts'

/** A hanging daemon must not hold up a message about a missing program. */
const askMs = 3_000

/** Whether a Docker engine answers. */
export function hasDocker(environment: Environment): boolean {
  const env = { ...environment } as NodeJS.ProcessEnv
  return spawnSync('docker', ['info'], { stdio: 'ignore', timeout: askMs, env }).status === 0
}
