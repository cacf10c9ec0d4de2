import { open, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'

interface ProcessOptions {
  /** What did not start, in the error. */
  readonly name: string
  /** All that it writes is appended to it. */
  readonly logFile: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd?: string | undefined
  /** One attempt: does it answer? */
  readonly ready: () => boolean | Promise<boolean>
  /** It starts within seconds; a busy machine may need many times that. */
  readonly deadlineMs?: number
}

/** Starts a program, and waits until it answers. */
export async function startProcess(command: readonly [string, ...string[]], options: ProcessOptions) {
  const { name, logFile, env, cwd = process.cwd(), ready, deadlineMs = 60_000 } = options
  const log = await open(logFile, 'a')
  const child = spawnBound(command, { stdio: ['ignore', log.fd, log.fd], env, cwd })
  await log.close()
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const alive = () => child.exitCode === null && child.signalCode === null
  const up = await waitUntil(async () => !alive() || ready(), { deadlineMs })
  if (up !== true || !alive()) {
    throw new Error(`${name} did not start:\n${(await readFile(logFile, 'utf8')).slice(-4_000)}`)
  }
  return {
    pid: child.pid ?? 0,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Waits until it is gone. */
    async end(signal: NodeJS.Signals) {
      child.kill(signal)
      await ended
    },
  }
}

/** Whether something accepts connections there. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const finish = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => finish(true))
    socket.once('error', () => finish(false))
  })
}

/** Whether an address answers 200. */
export async function answersOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
  await response?.body?.cancel()
  return response?.status === 200
}
