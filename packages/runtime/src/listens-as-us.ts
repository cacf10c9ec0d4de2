import { existsSync, readFileSync } from 'node:fs'

/** The kernel's number for a socket that listens. */
const listening = '0A'

/**
 * Whether a process of our own user listens on this port: one of another user, which took the port before our server
 * did, would get the password. Linux has the owner of each socket; elsewhere every listener counts as ours.
 */
export function listensAsUs(port: number): boolean {
  if (process.platform !== 'linux') return true
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  // a kernel may be without IPv6
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].filter((table) => existsSync(table))
  const rows = tables.flatMap((table) => readFileSync(table, 'utf8').split('\n'))
  return rows.some((row) => {
    const [, local, , state, , , , uid] = row.trim().split(/\s+/)
    return local?.endsWith(end) && state === listening && Number(uid) === process.getuid?.()
  })
}
