import autocannon, { type Result } from 'autocannon'
import type { Asking } from './caller.ts'

export interface LoadOptions {
  /** Without a path. */
  readonly origin: string
  readonly asking: Asking
  /** Each sends its next request when its last one was answered, and speaks for a caller of its own. */
  readonly connections: number
  readonly seconds: number
  /** Requests a second of all connections; as fast as it goes if left out. */
  readonly rate?: number | undefined
}

export interface Load {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** How much of one core the load itself took; near 1 the server was not what bounded the run. */
  readonly generatorCores: number
}

/** A request unanswered for this long has failed; the slowest seen take a tenth of a second. */
const timeoutSeconds = 5

/**
 * Loads one server from this process. Fails if any request was not answered with 2xx, for then it measured something
 * else.
 */
export async function driveLoad({ origin, asking, connections, seconds, rate }: LoadOptions): Promise<Load> {
  const url = `${origin}${asking.path}`
  const tookMs: number[] = []
  let connection = 0
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const result = await new Promise<Result>((resolve, reject) => {
    const run = autocannon(
      {
        url,
        method: asking.method,
        connections,
        ...(rate === undefined ? {} : { overallRate: rate }),
        duration: seconds,
        sampleInt: 50,
        timeout: timeoutSeconds,
        setupClient(client) {
          client.setHeadersAndBody(asking.headersOf(connection), asking.bodyOf?.(connection))
          connection += 1
        },
      },
      (error, done) => (error === null ? resolve(done) : reject(error)),
    )
    // autocannon's own percentiles are whole milliseconds.
    run.on('response', (_client, _status, _bytes, ms) => tookMs.push(ms))
  })
  const { '2xx': answered, non2xx, errors } = result
  if (non2xx > 0 || errors > 0 || answered === 0) {
    throw new Error(`${url}: ${answered} answers, ${non2xx} refused, ${errors} requests failed`)
  }
  return loadOf(tookMs, startedAt, cpuBefore)
}

/** What the requests came to that took so long each. */
export function loadOf(tookMs: number[], startedAt: number, cpuBefore: NodeJS.CpuUsage): Load {
  const tookSeconds = (performance.now() - startedAt) / 1_000
  const { user, system } = process.cpuUsage(cpuBefore)
  tookMs.sort((a, b) => a - b)
  const percentile = (share: number) => tookMs[Math.floor(tookMs.length * share)] ?? Number.NaN
  return {
    requests: tookMs.length,
    requestsPerSecond: tookMs.length / tookSeconds,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    generatorCores: (user + system) / 1e6 / tookSeconds,
  }
}
