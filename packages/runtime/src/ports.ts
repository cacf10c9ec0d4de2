import { createServer } from 'node:net'

/** Binds a loopback port for a moment; undefined if it is in use. Port 0 asks the system for a free one. */
async function tryPort(port: number): Promise<{ port: number; release: () => Promise<void> } | undefined> {
  const server = createServer()
  const bound = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1' }, () => resolve(true))
  })
  const address = server.address()
  if (!bound || address === null || typeof address === 'string') return undefined
  return { port: address.port, release: () => new Promise((resolve) => server.close(() => resolve())) }
}

/** Returns different free ports, all held until all are found. Another program may still take one before its use. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, () => tryPort(0)))
  const found = held.filter((one) => one !== undefined)
  await Promise.all(found.map((one) => one.release()))
  if (found.length < count) throw new Error(`no ${count} free ports on 127.0.0.1`)
  return found.map((one) => one.port)
}

/** Whether nothing listens on this loopback port now. */
export async function isPortFree(port: number): Promise<boolean> {
  const held = await tryPort(port)
  await held?.release()
  return held !== undefined
}
