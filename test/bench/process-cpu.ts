import { readdirSync, readFileSync } from 'node:fs'

/** The kernel counts in ticks of 10 ms, 100 a second on every Linux; measure over seconds. */
const ticksPerSecond = 100

function readStat(file: string): number {
  // Behind the program's name, which stands in brackets and may itself hold brackets and blanks.
  const fields = readFileSync(file, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** User and system time that a process has used so far, all its threads together. */
export const processCpuSeconds = (pid: number): number => readStat(`/proc/${pid}/stat`)

/**
 * Of that, what its first thread has used: in Node the one that runs JavaScript, without compiler and garbage
 * collector.
 */
export const mainThreadCpuSeconds = (pid: number): number => readStat(`/proc/${pid}/task/${pid}/stat`)

/** CPU time of a process by kind of thread: the first is `main`, and the others' names lose the number at their end. */
export function threadKindsCpuSeconds(pid: number): ReadonlyMap<string, number> {
  const folder = `/proc/${pid}/task`
  const kinds = new Map<string, number>()
  for (const thread of readdirSync(folder)) {
    try {
      const name = readFileSync(`${folder}/${thread}/comm`, 'utf8')
        .replaceAll(/[\d#]+/g, '')
        .trim()
      const kind = Number(thread) === pid ? 'main' : name
      kinds.set(kind, (kinds.get(kind) ?? 0) + readStat(`${folder}/${thread}/stat`))
    } catch {
      // It has ended meanwhile, as threads of a pool do.
    }
  }
  return kinds
}

/** Memory of a process that is in RAM, in MB. What several processes share counts in each. */
export const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024

/** What a process has had written to disk so far. */
export const writtenBytes = (pid: number): number =>
  Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])

/**
 * Time in which programs used the machine's cores so far, all together, and what its host took of them. Interrupts are
 * left out: the network's are served on behalf of the very programs that a bench measures.
 */
export function machineCpuSeconds(): number {
  // user nice system idle iowait irq softirq steal
  const ticks = readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/\s+/).slice(1).map(Number) ?? []
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = ticks
  return (user + nice + system + steal) / ticksPerSecond
}
