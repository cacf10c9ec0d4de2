import { unwatchFile, watchFile } from 'node:fs'

/** Within a second a new file is in use; a look is one `stat` of each, on a thread of the pool. */
const lookEveryMs = 400

/**
 * Calls `onChange` within half a second after any of these files was written, replaced, or came by another symbolic
 * link, as in a volume of Kubernetes; and once soon after the start, for what changed since the caller has read them.
 * Looks by `stat`: no event is missed on any file system. Returns what stops it. Keeps no process alive.
 */
export function followFiles(paths: readonly string[], onChange: () => void): () => void {
  for (const path of paths) watchFile(path, { interval: lookEveryMs, persistent: false }, onChange)
  const first = setTimeout(onChange, lookEveryMs).unref()
  return () => {
    clearTimeout(first)
    for (const path of paths) unwatchFile(path, onChange)
  }
}
