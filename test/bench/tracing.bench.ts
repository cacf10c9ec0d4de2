import { RequestTraces } from '@weir/ingress/trace/request-trace.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { checkConfig } from '@weir/runtime/read-config.ts'
import { createRun } from '@weir/runtime/run.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { openTracing, tracingVariables } from '@weir/runtime/tracing.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { Registry } from 'prom-client'
import { type BenchOptions, type BenchReport, spread } from './report.ts'
import { compare, deciding, type Work } from './thread/deciding.ts'

/** Of a request that is traced: its own, `decide` and `journal append`. */
const spansEach = 3

/** A process that takes whatever it is sent, and prints its port. */
const collector = `const server = require('node:http').createServer((request, response) => {
  request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
}).listen(0, '127.0.0.1', () => console.log(server.address().port))`

async function openCollector() {
  const child = spawnBound([process.execPath, '--eval', collector], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<string>((done) => child.stdout?.once('data', (text) => done(String(text).trim())))
  return { url: `http://127.0.0.1:${port}`, close: () => child.kill('SIGKILL') }
}

/** What tracing takes of the main thread, for requests that are not traced and for those that are. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const { url, close } = await openCollector()
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = url // read by OpenTelemetry's exporter
  const read = checkConfig(tracingVariables, { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_TRACES_SAMPLER: 'always_on' })
  if (read.kind === 'problems') throw new Error(read.problems.join())
  const [metrics, log] = [new Registry(), createLogger('bench', 'warn')]
  const tracing = await openTracing(read.config, 'bench', { run: createRun(log), metrics, log })
  if (tracing === undefined) throw new Error('nothing is traced')
  const exported = async () => Number(/result="exported"} (\d+)/.exec(await metrics.metrics())?.[1])
  const plain = deciding({ isCounted: true })
  // Its own share is no matter here, and neither is the bound of a second.
  const untraced = deciding({
    isCounted: true,
    traces: new RequestTraces({ ...tracing, sample: () => Math.random() < 0 }, false),
  })
  const all = deciding({ isCounted: true, traces: new RequestTraces({ ...tracing, sample: () => true }, false) })
  const traced: Work = async (calls) => {
    const before = await exported()
    await all(calls)
    const isOut = async () => (await exported()) >= before + calls * spansEach
    if ((await waitUntil(isOut, { deadlineMs: 30_000, everyMs: 250 })) !== true) throw new Error('spans were lost')
  }
  const pairs = [
    {
      label: 'a request that is not traced, beside one without tracing (target: at most 1)',
      calls: 30_000,
      without: plain,
      withIt: untraced,
    },
    // As many as may wait for the collector.
    {
      label: 'a request that is traced, until its three spans are exported (target: at most 60)',
      calls: 600,
      without: plain,
      withIt: traced,
    },
  ]
  const added = pairs.map(() => [] as number[])
  for (let round = 0; round < rounds; round += 1) {
    progress(`round ${round + 1} of ${rounds}`)
    for (const [at, pair] of pairs.entries()) added[at]?.push((await compare(pair)).added)
  }
  close()
  const unit = 'µs of the main thread, more'
  const rows = pairs.map(({ label }, at) => ({ label, unit, ...spread(added[at] ?? []) }))
  return { name: 'tracing', rows, ratios: [] }
}
