import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** Where the journals of a stack lie. */
const journalDir = (dir: string): string => join(dir, 'journal')

/** A small file system of its own for the journals; the test that mounts it unmounts it. Needs the right to mount. */
export function mountJournalDisk(dir: string, megabytes: number): () => void {
  const path = journalDir(dir)
  mkdirSync(path, { recursive: true })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], { stdio: 'pipe' })
  } catch (error) {
    throw new Error(`a full disk needs a small file system, and mounting one needs root: ${String(error)}`)
  }
  return () => execFileSync('umount', ['-l', path])
}
