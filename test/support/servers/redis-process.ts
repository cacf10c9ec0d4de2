import type { ChildProcess } from 'node:child_process'
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@weir/local-programs/find-program.ts'
import { redisProgram } from '@weir/local-programs/server-programs.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { endOfFile, keepLog } from './server-logs.ts'

/** A Redis or a Sentinel among several that a test runs together. */
export interface RedisProcess {
  readonly port: number
  signal(signal: NodeJS.Signals): void
  /** Kills it and waits until it is gone. */
  kill(): Promise<void>
  restart(): Promise<void>
}

const startDeadlineMs = 20_000

/** What tests start as Redis: the program of `weir up`, or the other version or Valkey that the environment names. */
export const redisPath = async (): Promise<string> =>
  process.env.WEIR_TEST_REDIS_SERVER || findProgram(redisProgram, { environment: process.env, tell: () => undefined })

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

/** Sentinels write into their configuration, so every server has a file and a folder of its own. */
export async function startFamily(name: string) {
  const dir = await mkdtemp(join(tmpdir(), `weir-test-${name}-`))
  const children = new Set<ChildProcess>()
  const keptEnds: (() => void)[] = []

  const launch = async (port: number, file: string, flags: readonly string[]) => {
    const log = await open(`${file}.log`, 'a')
    const program = await redisPath()
    const child = spawnBound([program, file, ...flags], { stdio: ['ignore', log.fd, log.fd] })
    await log.close()
    children.add(child)
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    void ended.then(() => children.delete(child))
    const isUp = await waitUntil(() => child.exitCode !== null || accepts(port), {
      deadlineMs: startDeadlineMs,
      everyMs: 20,
    })
    if (isUp !== true || child.exitCode !== null) {
      throw new Error(`${program} ${file} did not start:\n${await readFile(`${file}.log`, 'utf8')}`)
    }
    return { child, ended }
  }

  return {
    dir,
    /**
     * Starts a server with these settings, in the form of its configuration file, and waits until it accepts
     * connections.
     */
    async start(port: number, lines: readonly string[], flags: readonly string[] = []) {
      const own = join(dir, String(port))
      await mkdir(own)
      const file = join(own, 'redis.conf')
      const config = await open(file, 'w')
      await config.writeFile([`dir ${own}`, 'save ""', ...lines, ''].join('\n'))
      await config.close()
      keptEnds.push(keepLog('redis', () => endOfFile(`${file}.log`)))
      let running = await launch(port, file, flags)
      return {
        port,
        signal: (signal: NodeJS.Signals) => void running.child.kill(signal),
        async kill() {
          running.child.kill('SIGKILL')
          await running.ended
        },
        async restart() {
          running = await launch(port, file, flags)
        },
      }
    },
    /** Kills all and removes their data. */
    async close() {
      const gone = [...children].map((child) => new Promise<void>((resolve) => child.once('exit', () => resolve())))
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(gone)
      for (const keepEnd of keptEnds) keepEnd()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
