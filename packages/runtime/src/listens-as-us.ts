import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'

/** The kernel's number for a socket that listens. */
const listening = '0A'

/** A listener on loopback accepts at once. */
const acceptMsMax = 1_000

/** Whether somebody listens on a port of this machine. Costs next to nothing where nobody does. */
async function accepts(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port, timeout: acceptMsMax })
  try {
    await once(
      socket.once('timeout', () => socket.destroy(new Error('not accepted'))),
      'connect',
    )
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/**
 * Whether processes of our own user listen on all of these ports: one of another user, which took a port before our
 * server did, would get the password. Linux has the owner of each socket; elsewhere every listener counts as ours.
 */
export async function listenAsUs(ports: readonly number[]): Promise<boolean> {
  // The kernel's tables take milliseconds to read: only when there is something to find.
  if (!(await Promise.all(ports.map(accepts))).every(Boolean)) return false
  if (process.platform !== 'linux') return true
  // a kernel may be without IPv6
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].filter((table) => existsSync(table))
  const ours = new Set<number>()
  for (const row of tables.flatMap((table) => readFileSync(table, 'utf8').split('\n'))) {
    const [, local = '', , state, , , , uid] = row.trim().split(/\s+/)
    if (state === listening && Number(uid) === process.getuid?.()) ours.add(Number.parseInt(local.slice(-4), 16))
  }
  return ports.every((port) => ours.has(port))
}
