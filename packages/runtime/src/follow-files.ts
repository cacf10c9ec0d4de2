import { unwatchFile, watchFile } from 'node:fs'

/** A new file is in use within a second; each check is one `stat` per file, on a thread of the pool. */
const lookEveryMs = 400

/**
 * Calls `onChange` within half a second after any of these files was written or replaced, or a symbolic link to it was,
 * as in a volume of Kubernetes; and once soon after the start, for changes since the caller has read them. It uses
 * `stat`, so that it works on every file system, and keeps no process alive. Returns the function that stops it.
 */
export function followFiles(paths: readonly string[], onChange: () => void): () => void {
  for (const path of paths) watchFile(path, { interval: lookEveryMs, persistent: false }, onChange)
  const first = setTimeout(onChange, lookEveryMs).unref()
  return () => {
    clearTimeout(first)
    for (const path of paths) unwatchFile(path, onChange)
  }
}
