import type { Server } from 'node:http'
import { WeirError } from '@weir/core/errors.ts'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type CrashPoint, createCrashPoint } from './crash-point.ts'
import { createLogger, type Logger, logLevels } from './logger.ts'
import { closeHttpServer, type ReadinessCheck, startOpsServer } from './ops-server.ts'
import { type Config, choice, port, text } from './read-config.ts'
import { createRun, type Run } from './run.ts'
import { registerScraped } from './scraped-metrics.ts'
import { version } from './version.ts'

/** Time between two samples of the event loop's lag: 10 ms, as by default, are most of what an idle process costs. */
const lagSampleMs = 100

/** Returns the variables that every service has. */
export const serviceVariables = (opsPort: number) => ({
  logLevel: choice({ name: 'WEIR_LOG_LEVEL', about: 'least severe log line written', fallback: 'info', of: logLevels }),
  opsHost: text({ name: 'WEIR_OPS_HOST', about: 'address of /livez, /readyz and /metrics', fallback: '127.0.0.1' }),
  opsPort: port({ name: 'WEIR_OPS_PORT', about: 'port of /livez, /readyz and /metrics', fallback: String(opsPort) }),
  crashAt: text({ name: 'WEIR_CRASH_AT', about: 'for tests: the step at which to end as kill -9 would', fallback: '' }),
})

/** The values of these variables. */
type ServiceConfig = Config<ReturnType<typeof serviceVariables>>

/** The inputs of a service's wiring. */
export interface Service {
  readonly run: Run
  readonly log: Logger
  readonly metrics: Registry
  /** Called at every numbered step of the service's orders of effects. */
  readonly crash: CrashPoint
  /** Adds a part that /readyz asks. */
  readonly checkReady: (part: string, check: ReadinessCheck) => void
}

/** The metrics of every process: under the names that rules for any program on Node use, and what runs here. */
function createMetrics(): Registry {
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: lagSampleMs })
  // Gauges with the ending of counters; those without it say the same by type.
  for (const what of ['handles', 'requests', 'resources']) metrics.removeSingleMetric(`nodejs_active_${what}_total`)
  const running = [[version, process.version], 1] as const
  registerScraped(metrics, {
    weir_build_info: { help: 'Running versions', labels: ['version', 'node'], cells: () => [running] },
  })
  return metrics
}

/**
 * Runs a service, for every main.ts: all of the configuration, then the wiring, then the wait, then the exit code. The
 * ops port opens before the wiring, so that a service which waits for its servers can say what it waits for.
 */
export async function startService<C extends ServiceConfig>(
  name: string,
  readConfig: () => C,
  wire: (config: C, service: Service) => Promise<void>,
): Promise<void> {
  let config: C
  try {
    config = readConfig()
  } catch (error) {
    if (!(error instanceof WeirError)) throw error
    process.stderr.write(`${name}: ${error.message}\n`)
    process.exit(2)
  }
  const log = createLogger(name, config.logLevel)
  const run = createRun(log)
  const metrics = createMetrics()
  const crash = createCrashPoint(name, config.crashAt)
  let wired = false
  const stage = () => (run.stopping.aborted ? 'stopping' : wired ? undefined : 'still starting')
  const readiness: Record<string, ReadinessCheck> = { process: stage }
  const checkReady = (part: string, check: ReadinessCheck) => {
    readiness[part] = check
  }
  const start = async () => {
    const { opsHost: host, opsPort } = config
    const ops = startOpsServer({ host, port: opsPort, metrics, readiness })
    await run.own('ops server', ops, (server: Server) => closeHttpServer(server))
    await wire(config, { run, log, metrics, crash, checkReady })
    wired = true
    log.info({ opsPort }, 'started')
  }
  start().catch((error: unknown) => run.fail(error))
  const { exitCode } = await run.untilStopped()
  process.exit(exitCode)
}
