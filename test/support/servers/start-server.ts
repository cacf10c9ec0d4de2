import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NativeServer, ServerPlan } from '@weir/local-programs/native-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { takeFormatted } from './formatted-kafka.ts'
import { redisPath } from './redis-process.ts'
import { endOfFile, keepLog } from './server-logs.ts'

export type RunningServer = Awaited<ReturnType<typeof startServer>>

/** Kafka's first start takes 3 s here and ClickHouse's 1 s; a busy machine may need many times that. */
const startDeadlineMs = 60_000

async function launch(server: NativeServer, plan: ServerPlan, logFile: string) {
  const log = await open(logFile, 'a')
  const child = spawnBound(plan.command, {
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, ...plan.env },
    cwd: plan.cwd,
  })
  await log.close()
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const alive = () => child.exitCode === null && child.signalCode === null
  const up = await waitUntil(async () => (alive() ? await plan.ready() : true), { deadlineMs: startDeadlineMs })
  if (up !== true || !alive()) {
    const text = await readFile(logFile, 'utf8')
    throw new Error(`${server.name} did not start: ${plan.command.join(' ')}\n${text.slice(-2_000)}`)
  }
  return { child, ended }
}

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
  let running = await launch(server, plan, logFile)
  const kill = async (signal: NodeJS.Signals) => {
    running.child.kill(signal)
    await running.ended
  }
  return {
    address: plan.address,
    dir,
    logFile,
    pid: () => running.child.pid ?? 0,
    /** Waits until the process is gone. */
    kill,
    /** Starts it again on the same data and ports, and waits until it answers. */
    async restart() {
      running = await launch(server, plan, logFile)
    },
    /** Kills it, and removes its data unless they are kept. */
    async close() {
      await kill('SIGKILL')
      keepEnd()
      if (keptDir === undefined) await rm(dir, { recursive: true, force: true })
    },
  }
}
