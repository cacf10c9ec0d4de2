import { isPortFree } from '@weir/runtime/ports.ts'

/**
 * Below the ports that the kernel gives to connections and to listeners on port 0: nothing takes one of these before
 * its server does.
 */
const first = 12_000
const count = 20_000

/** Test files run at the same time, each in a process: those begin far apart, and a process gives no port twice. */
let next = process.pid * 7_919

/** Different ports that are free now, for servers that are started next. */
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
