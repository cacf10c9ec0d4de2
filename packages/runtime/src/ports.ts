import { createServer } from 'node:net'

/**
 * Below the ports that the kernel gives to connections and to listeners on port 0: nothing takes one of these before
 * its server does, or while that starts again.
 */
const first = 12_000
const count = 20_000

/** Processes that choose at the same time begin far apart, and a process gives no port twice. */
let next = process.pid * 7_919

/** Returns different ports of 127.0.0.1 that are free now, for servers that are started next. */
export async function freePorts(wanted: number): Promise<number[]> {
  const found: number[] = []
  for (let tries = 0; tries < count && found.length < wanted; tries += 1) {
    next += 1
    const port = first + (next % count)
    if (await isPortFree(port)) found.push(port)
  }
  if (found.length < wanted) throw new Error(`127.0.0.1 has no ${wanted} free ports`)
  return found
}

/** Whether nothing listens on this loopback port now: binds it for a moment. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1' }, () => resolve(true))
  })
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return isFree
}
