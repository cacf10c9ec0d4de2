import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The process that holds this data directory open, if there is one and the system can tell (Linux). The engine's own
 * lock is what really keeps a second process out; this only finds the words for it before the engine is loaded.
 */
export function directoryHolder(path: string): number | undefined {
  try {
    const status = realpathSync(join(path, 'status'))
    const pid = Number(/^PID: (\d+)$/m.exec(readFileSync(status, 'utf8'))?.[1])
    const files = `/proc/${pid}/fd`
    return readdirSync(files).some((fd) => isLink(join(files, fd), status)) ? pid : undefined
  } catch {
    return undefined
  }
}

function isLink(link: string, target: string): boolean {
  try {
    return readlinkSync(link) === target
  } catch {
    return false // Closed since it was listed.
  }
}
