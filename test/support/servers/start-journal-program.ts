import { join } from 'node:path'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { JournalTask } from './journal-program.ts'

/** A process that appends to a journal of its own, and says of what it is sure. */
export interface JournalProgram {
  /** Waits until it has said so many records in all. */
  reaches(n: number): Promise<void>
  /** kill -9. What it had said by then: numbers below `n`, and `refusals` in sums. */
  kill(): Promise<{ readonly n: number; readonly refusals: number }>
}

export function startJournalProgram(task: JournalTask): JournalProgram {
  const child = spawnBound([process.execPath, join(import.meta.dirname, 'journal-program.ts'), JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let text = ''
  const said = () => {
    const [n = task.from, refusals = 0] = (text.split('\n').at(-2) ?? '').split(' ').filter(Boolean).map(Number)
    return { n, refusals }
  }
  child.stdout?.on('data', (chunk) => {
    text = (text + String(chunk)).slice(-1_000) // only the last whole line matters
  })
  return {
    async reaches(n) {
      const isThere = await waitUntil(() => child.exitCode === null && said().n >= n, { deadlineMs: 30_000 })
      if (isThere !== true) throw new Error(`it came to ${said().n} of ${n}`)
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
      return said()
    },
  }
}
