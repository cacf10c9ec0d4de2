import { closeSync, openSync, statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { withTimeout } from '@weir/runtime/with-timeout.ts'

const socketName = 'live.sock'

/** Linux takes socket paths of 107 bytes; longer ones go through the descriptor of their directory. */
const pathBytesMax = 107

/** A socket of this machine answers immediately or never; a stopped process's queue takes the connection without it. */
const connectDeadlineMs = 2_000

/**
 * A directory without its socket counts as locked for this long after it was last written to: its process restores the
 * socket within a second.
 */
const missingSocketMs = 10_000

function withDirectory<T>(directory: string, use: (directory: string, fd: number | undefined) => T): T {
  if (Buffer.byteLength(join(directory, socketName)) + '.new'.length <= pathBytesMax) return use(directory, undefined)
  const fd = openSync(directory, 'r')
  return use(`/proc/self/fd/${fd}`, fd)
}

const close = (fd: number | undefined): void => {
  if (fd !== undefined) closeSync(fd)
}

/** Listens on the directory's socket, in place of one that may be there. */
export async function lockWithSocket(directory: string): Promise<() => Promise<void>> {
  return withDirectory(directory, async (short, fd) => {
    const server = createServer((connection) => connection.destroy())
    const path = join(short, `${socketName}.new`)
    const { promise: listening, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen(path, resolve)
    await listening.catch((error) => {
      close(fd)
      throw error
    })
    // Under another name than it was bound to, Node does not remove it when it closes: then it refuses, which says dead
    // at once.
    await rename(path, join(short, socketName))
    server.unref()
    return async () => {
      await new Promise((done) => server.close(done))
      close(fd)
    }
  })
}

/** Whether the directory's own socket is in its place. */
export const hasSocket = (directory: string): boolean =>
  statSync(join(directory, socketName), { throwIfNoEntry: false }) !== undefined

/** The code of an error of the system; undefined for any other. */
export const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined)

function tryConnect(path: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect(path, () => resolve('connected'))
  socket.once('error', (error) => resolve(String(codeOf(error))))
  return withTimeout(promise, connectDeadlineMs, 'late').finally(() => socket.destroy())
}

function wasWrittenLately(directory: string): boolean {
  const stat = statSync(directory, { throwIfNoEntry: false })
  return stat !== undefined && Math.abs(Date.now() - stat.mtimeMs) < missingSocketMs
}

/**
 * Whether a process holds the directory. Only a socket that refuses says no, or one that is missing for a while:
 * whatever else goes wrong, and a process that is stopped, counts as alive.
 */
export async function isLocked(directory: string): Promise<boolean> {
  try {
    return await withDirectory(directory, async (short, fd) => {
      const answer = await tryConnect(join(short, socketName))
      close(fd)
      if (answer === 'ENOENT') return wasWrittenLately(directory)
      return answer !== 'ECONNREFUSED'
    })
  } catch (error) {
    // The directory itself is gone: another has adopted it meanwhile.
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}
