import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { inProject } from './project.ts'
import { readLauncher, readPolicyPath } from './read-state-file.ts'

/** Where a `weir up` keeps its data unless it is told otherwise. */
export const ownDataDir = inProject('.weir', 'data')
/** Names the data directory of the last `weir up` of this checkout. */
const lastUpFile = inProject('.weir', 'last-up')

/** Whether a process has this id; it may be another one by now, and then its console does not answer. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Remembers where a `weir up` keeps its data. A checkout that cannot be written remembers nothing. */
export function rememberUp(dataDir: string, file = lastUpFile): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${dataDir}\n`)
  } catch {}
}

function runs(dir: string | undefined): boolean {
  const launcher = dir === undefined ? undefined : readLauncher(dir)
  return launcher !== undefined && isAlive(launcher)
}

function lastUp(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Returns the data directory of the `weir up` that runs: the usual one, else the last that was named with --data. */
export function dataDirOfUp(usual = ownDataDir, file = lastUpFile): string {
  const last = runs(usual) ? undefined : lastUp(file)
  return last !== undefined && runs(last) ? last : usual
}

/** Returns the policy file that the `weir up` that runs was started with; undefined where none runs. */
export function policyOfUp(): string | undefined {
  const dir = dataDirOfUp()
  return runs(dir) ? readPolicyPath(dir) : undefined
}
