import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NativeServer, ServerPlan } from '@weir/local-programs/native-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { startProcess } from '../start-process.ts'
import { takeFormatted } from './formatted-kafka.ts'
import { redisPath } from './redis-process.ts'
import { endOfFile, keepLog } from './server-logs.ts'

export type RunningServer = Awaited<ReturnType<typeof startServer>>

/**
 * A real server of a test's own, on free ports and an empty folder, or on one that is kept. The test that starts it
 * closes it.
 */
export async function startServer(server: NativeServer, keptDir?: string) {
  const dir = keptDir ?? (await mkdtemp(join(tmpdir(), `weir-test-${server.name}-`)))
  const data = join(dir, 'data')
  if (server.name === 'kafka') await takeFormatted(data)
  const planned = await server.plan({
    dir: data,
    ports: await freePorts(server.portCount),
    progress: (line) => process.stderr.write(`${line}\n`),
    environment: process.env,
  })
  const [program, ...words] = planned.command
  const plan: ServerPlan = { ...planned, command: [server.name === 'redis' ? await redisPath() : program, ...words] }
  const logFile = join(dir, 'server.log')
  const keepEnd = keepLog(server.name, () => endOfFile(logFile))
  const launch = () => {
    const { command, env, cwd, ready } = plan
    const name = `${server.name}, ${command.join(' ')}`
    return startProcess(command, { name, logFile, env: { ...process.env, ...env }, cwd, ready })
  }
  let running = await launch()
  const kill = (signal: NodeJS.Signals) => running.end(signal)
  return {
    address: plan.address,
    dir,
    logFile,
    pid: () => running.pid,
    /** Waits until the process is gone. */
    kill,
    /** Starts it again on the same data and ports, and waits until it answers. */
    async restart() {
      running = await launch()
    },
    /** Kills it, and removes its data unless they are kept. */
    async close() {
      await kill('SIGKILL')
      keepEnd()
      if (keptDir === undefined) await rm(dir, { recursive: true, force: true })
    },
  }
}
