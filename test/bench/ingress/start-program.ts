import { join } from 'node:path'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** Starts within a second on a quiet machine. */
const startDeadlineMs = 30_000
/** The ingress drains its records for at most 10 s. */
const stopDeadlineMs = 15_000

export interface Program {
  readonly pid: number
  /** Asks it to stop, and kills it if it has not within the deadline. */
  close(): Promise<void>
}

export interface ProgramOptions {
  /** From the root of the checkout. */
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** One attempt: does it answer? */
  readonly ready: () => Promise<boolean>
}

const checkout = join(import.meta.dirname, '../../..')

/** Runs a TypeScript program in a process of its own, so that its CPU time is told apart. */
export async function startProgram({ file, args, env, ready }: ProgramOptions): Promise<Program> {
  const command = [process.execPath, '--disable-warning=ExperimentalWarning', join(checkout, file), ...args] as const
  // Its log goes to our stderr: stdout is the report's.
  const child = spawnBound(command, {
    stdio: ['ignore', 2, 2],
    env: { ...process.env, NODE_ENV: 'production', ...env },
  })
  const ended = new Promise<true>((resolve) => child.once('exit', () => resolve(true)))
  const alive = () => child.exitCode === null && child.signalCode === null
  const program = {
    pid: child.pid ?? 0,
    async close() {
      child.kill('SIGTERM')
      const gone = await Promise.race([ended, waitUntil(() => !alive(), { deadlineMs: stopDeadlineMs })])
      if (gone !== true) child.kill('SIGKILL')
      await ended
    },
  }
  const up = await waitUntil(async () => !alive() || (await ready()), { deadlineMs: startDeadlineMs })
  if (up === true && alive()) return program
  await program.close()
  throw new Error(`${file} did not answer within ${startDeadlineMs / 1_000} s; its log stands above`)
}
