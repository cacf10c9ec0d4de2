import { projectRoot } from '@weir/cli/project.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { metricIn } from './read-metric.ts'
import { keepLog } from './servers/server-logs.ts'

/** A process of a service as it runs in production. */
export type ServiceProcess = Awaited<ReturnType<typeof startServiceProcess>>

/**
 * Starts `services/NAME` on an ops port of its own; its group's session is 6 s unless the environment says otherwise.
 */
export async function startServiceProcess(
  name: 'ingress' | 'metering' | 'alerting' | 'console',
  environment: Readonly<Record<string, string>>,
) {
  const [port] = await freePorts(1)
  let text = ''
  const child = spawnBound([process.execPath, `${projectRoot}/services/${name}/src/main.ts`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, WEIR_OPS_PORT: String(port), WEIR_KAFKA_SESSION_MS: '6000', ...environment },
  })
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => (text += part))
  const keepEnd = keepLog(name, () => text)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  void ended.then(keepEnd)
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) })
    return { status: answer.status, text: await answer.text() }
  }
  return {
    pid: child.pid ?? 0,
    /** What it has written so far. */
    said: () => text,
    /** Resolves when it is gone. */
    ended,
    ready: () => get('/readyz').catch((error: unknown) => ({ status: 0, text: String(error) })),
    async metric(metricName: string) {
      return metricIn((await get('/metrics')).text, metricName) ?? Number.NaN
    },
    async kill(signal: NodeJS.Signals) {
      child.kill(signal)
      await ended
    },
  }
}
