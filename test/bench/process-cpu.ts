import { readFileSync } from 'node:fs'

/** The kernel counts in ticks of 10 ms, 100 a second on every Linux; measure over seconds. */
const ticksPerSecond = 100

/** User and system time that a process has used so far, all its threads together. */
export function processCpuSeconds(pid: number): number {
  // Behind the program's name, which stands in brackets and may itself hold brackets and blanks.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}
