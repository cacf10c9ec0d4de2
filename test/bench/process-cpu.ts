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

/** Of that, what its thread of this name has used; 0 where there is none. */
export function threadCpuSeconds(pid: number, name: string): number {
  const folder = `/proc/${pid}/task`
  for (const thread of readdirSync(folder)) {
    try {
      if (readFileSync(`${folder}/${thread}/comm`, 'utf8').trim() === name) return readStat(`${folder}/${thread}/stat`)
    } catch {
      // It has ended meanwhile, as threads of a pool do.
    }
  }
  return 0
}
