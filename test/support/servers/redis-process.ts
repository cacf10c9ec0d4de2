import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@weir/local-programs/find-program.ts'
import { redisProgram } from '@weir/local-programs/server-programs.ts'
import { accepts, startProcess } from '../start-process.ts'
import { endOfFile, keepLog } from './server-logs.ts'

/** A Redis or a Sentinel among several that a test runs together. */
export interface RedisProcess {
  readonly port: number
  signal(signal: NodeJS.Signals): void
  /** Kills it and waits until it is gone. */
  kill(): Promise<void>
  restart(): Promise<void>
}

/** What tests start as Redis: the program of `weir up`, or the other version or Valkey that the environment names. */
export const redisPath = async (): Promise<string> =>
  process.env.WEIR_TEST_REDIS_SERVER || findProgram(redisProgram, { environment: process.env, tell: () => undefined })

/** Sentinels write into their configuration, so every server has a file and a folder of its own. */
export async function startFamily(name: string) {
  const dir = await mkdtemp(join(tmpdir(), `weir-test-${name}-`))
  const all: Awaited<ReturnType<typeof startProcess>>[] = []
  const keptEnds: (() => void)[] = []

  const launch = async (port: number, file: string, flags: readonly string[]) => {
    const program = await redisPath()
    const started = await startProcess([program, file, ...flags], {
      name: `${program} ${file}`,
      logFile: `${file}.log`,
      env: process.env,
      ready: () => accepts(port),
      deadlineMs: 20_000,
    })
    all.push(started)
    return started
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
        signal: (signal: NodeJS.Signals) => running.signal(signal),
        /** Waits until it is gone. */
        kill: () => running.end('SIGKILL'),
        async restart() {
          running = await launch(port, file, flags)
        },
      }
    },
    /** Kills all and removes their data. */
    async close() {
      await Promise.all(all.map((one) => one.end('SIGKILL')))
      for (const keepEnd of keptEnds) keepEnd()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
