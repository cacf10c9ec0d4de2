import { closeSync, fdatasyncSync, openSync, renameSync, writeFileSync } from 'node:fs'

/**
 * Replaces a small file atomically: a reader sees the old text or the new one, also after a kill between any two steps.
 */
export function replaceFile(path: string, text: string, sync = false): void {
  const next = `${path}.new`
  const fd = openSync(next, 'w', 0o600)
  try {
    writeFileSync(fd, text)
    if (sync) fdatasyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(next, path)
}
