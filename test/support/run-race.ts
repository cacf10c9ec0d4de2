import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RaceDecision, RaceTask } from './race-process.ts'

/** A race of tens of thousands of decisions. */
const outputBytesMax = 64 * 2 ** 20

/** Runs this many processes of one task at once; gives everything that they were answered. */
export async function runRace(processes: number, task: RaceTask): Promise<RaceDecision[]> {
  const program = join(import.meta.dirname, 'race-process.ts')
  const run = async (): Promise<RaceDecision[]> => {
    const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify(task)], {
      timeout: 60_000,
      maxBuffer: outputBytesMax,
    })
    return JSON.parse(stdout)
  }
  return (await Promise.all(Array.from({ length: processes }, run))).flat()
}
