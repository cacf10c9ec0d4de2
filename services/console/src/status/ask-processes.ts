import type { Status } from '@weir/api/status.ts'

/** Where a process has its ops port, and what people call it. */
export interface StatusAddress {
  readonly name: string
  readonly url: string
}

/** What one process says of itself on its ops port. */
export interface ProcessStatus extends StatusAddress, Pick<Status['processes'][number], 'said' | 'ready'> {
  /** Its main metrics by name, summed over their labels; those that it does not have are left out. */
  readonly metrics: Readonly<Record<string, number>>
  /** Endpoints to which it holds deliveries back since they fail, with the number of addresses. */
  readonly heldBack: Readonly<Record<string, number>>
}

/** A process on the same network answers within milliseconds; one that does not is said to be silent. */
const answerMs = 1_000
/** What is said of such a process. */
export const lateWords = `no response within ${answerMs / 1_000} s`
/** A page of metrics has up to some 300 kB; a line of /readyz for each of some ten parts. */
const answerBytesMax = 1024 * 1024

/** What a person looks at first, of each service. docs/monitoring.md says what each means. */
const mainMetrics: readonly string[] = [
  'weir_consumer_lag_records',
  'weir_consumer_stopped_partitions',
  'weir_journal_records_waiting',
  'weir_journal_gaps_total',
  'weir_dead_letters_total',
  'weir_redis_servers_gone',
  'weir_decision_source_total{source="unavailable"}',
  'weir_decisions_without_redis_ratio',
  'weir_endpoint_circuits_open',
]

/** The main metrics in a page of Prometheus' text format: a series by its labels, others summed over theirs. */
function readMetrics(page: string): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const line of page.split('\n')) {
    const [, series = '', name = '', value] = /^((\w+)(?:\{.*\})?) (\S+)/.exec(line) ?? []
    const main = mainMetrics.find((one) => one === name || one === series)
    if (main !== undefined) sums[main] = (sums[main] ?? 0) + Number(value)
  }
  return sums
}

/** The circuits that are open in such a page, by endpoint. */
const readHeldBack = (page: string): Record<string, number> =>
  Object.fromEntries(
    [...page.matchAll(/^weir_endpoint_circuits_open\{endpoint="([^"]*)"\} ([1-9]\d*)$/gm)].map(
      ([, endpoint = '', count]) => [endpoint, Number(count)],
    ),
  )

async function readText(url: string, signal: AbortSignal): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(url, { signal, redirect: 'error' })
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > answerBytesMax) throw new Error(`answers with more than ${answerBytesMax} bytes`)
    parts.push(part)
  }
  return { status: response.status, body: Buffer.concat(parts).toString('utf8') }
}

function whyNot(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return lateWords
  const { cause } = error
  return cause instanceof Error && 'code' in cause ? `no answer: ${String(cause.code)}` : `no answer: ${error.message}`
}

async function askProcess({ name, url }: StatusAddress): Promise<ProcessStatus> {
  const signal = AbortSignal.timeout(answerMs)
  try {
    const [ready, metrics] = await Promise.all([
      readText(new URL('/readyz', url).href, signal),
      readText(new URL('/metrics', url).href, signal),
    ])
    const said = ready.body.split('\n').filter((line) => line !== '' && line !== 'ok')
    const isReady = ready.status === 200
    return { name, url, said, ready: isReady, metrics: readMetrics(metrics.body), heldBack: readHeldBack(metrics.body) }
  } catch (error) {
    return { name, url, said: [whyNot(error)], ready: false, metrics: {}, heldBack: {} }
  }
}

/** Asks every process at once; who does not answer is said to be silent, and holds nobody else up. */
export const askProcesses = (addresses: readonly StatusAddress[]): Promise<ProcessStatus[]> =>
  Promise.all(addresses.map(askProcess))
