import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLogger } from './logger.ts'
import { checkConfig } from './read-config.ts'
import { createRun } from './run.ts'
import { openTracing, tracingVariables } from './tracing.ts'

const root = join(import.meta.dirname, '../../..')

/** Prints what is loaded when the process ends. */
const hook = `import { registerHooks } from 'node:module'
const loaded = []
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
process.on('exit', () => console.log(JSON.stringify(loaded)))`

function modulesLoadedBy(args: readonly string[]): readonly string[] {
  const importing = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
  let said: string
  try {
    said = execFileSync(process.execPath, [...importing, ...args], { env: {}, encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    said = (error as { stdout: string }).stdout
  }
  return JSON.parse(said.trim().split('\n').at(-1) ?? '[]')
}

/** prom-client itself loads the API, which does nothing. */
const isTelemetry = (url: string) => url.includes('/@opentelemetry/') && !url.includes('/@opentelemetry/api/')

test.for(['ingress', 'metering', 'alerting'])(
  "%s loads nothing of OpenTelemetry's SDK before it has read a collector",
  (name) => {
    // Without its variables it ends once everything that it imports is loaded.
    const loaded = modulesLoadedBy([join(root, 'services', name, 'src/main.ts')])
    expect(loaded.some((url) => url.endsWith('/packages/runtime/src/tracing.ts'))).toBe(true)
    expect(loaded.filter(isTelemetry)).toEqual([])
  },
)

test("without the address of a collector nothing of OpenTelemetry's SDK is loaded, with one it is", {
  timeout: 60_000,
}, () => {
  const opening = (endpoint: string) =>
    modulesLoadedBy([
      '--input-type=module',
      '--eval',
      `import { openTracing } from '${join(root, 'packages/runtime/src/tracing.ts')}'
       import { Registry } from '${import.meta.resolve('prom-client')}'
       const config = { otlpEndpoint: '${endpoint}', otlpTracesEndpoint: '', otlpHeaders: {}, tracesSampler: 'always_on', serviceName: '' }
       await openTracing(config, 'test', { run: { own: async (_, one) => one }, metrics: new Registry(), log: {} })`,
    ])
  expect(opening('').filter(isTelemetry)).toEqual([])
  expect(opening('http://127.0.0.1:4318').filter(isTelemetry).length).toBeGreaterThan(3)
})

/** What collectors were sent. */
const authorizations: (string | undefined)[] = []

/** A collector that answers with this status; undefined for never. */
async function openCollector(status: number | undefined) {
  const server = createServer(({ headers }, response) => {
    authorizations.push(headers.authorization)
    if (status !== undefined) response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function openOn(endpoint: string, more: Readonly<Record<string, string>> = {}) {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', endpoint)
  onTestFinished(() => void vi.unstubAllEnvs())
  const read = checkConfig(tracingVariables, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more })
  if (read.kind === 'problems') throw new Error(read.problems.join())
  const [metrics, log] = [new Registry(), createLogger('test', 'silent')]
  const tracing = await openTracing(read.config, 'test', { run: createRun(log), metrics, log })
  const ids = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
  const record = (count: number) => {
    for (let at = 0; at < count; at += 1) {
      tracing?.record({ ...ids, name: 'a span', kind: 'internal', startMs: 1, endMs: 2, attributes: {} })
    }
  }
  const counts = async () =>
    [...(await metrics.metrics()).matchAll(/weir_spans_total\{result="(\w+)"\} (\d+)/g)].map(([, , count]) =>
      Number(count),
    )
  return { record, counts }
}

test('spans that a collector takes are exported, and those that it refuses have failed', async () => {
  for (const [status, counted] of [
    [200, [700, 0, 0]],
    [400, [0, 700, 0]],
  ] as const) {
    const { record, counts } = await openOn(await openCollector(status))
    record(700)
    await expect.poll(counts, { timeout: 10_000 }).toEqual(counted)
  }
})

test('while the collector does not answer 2,048 spans wait, and what comes beyond is dropped and counted', async () => {
  const { record, counts } = await openOn(await openCollector(undefined))
  record(3_000)
  expect(await counts()).toEqual([0, 0, 952])
})

test('the headers of a collector may come from a file', async () => {
  const file = join(tmpdir(), `weir-otlp-headers-${process.pid}`)
  writeFileSync(file, 'authorization=Bearer%20a,b=c\n')
  onTestFinished(() => rmSync(file))
  const { record, counts } = await openOn(await openCollector(200), { OTEL_EXPORTER_OTLP_HEADERS_FILE: file })
  authorizations.length = 0
  record(1)
  await expect.poll(counts, { timeout: 10_000 }).toEqual([1, 0, 0])
  expect(authorizations).toEqual(['Bearer a'])
})

test.for(['authorization', 'a=b,c', 'a=100%', '=b'])(
  'headers for a collector that are not so are named: %s',
  (text) => {
    const read = checkConfig(tracingVariables, { OTEL_EXPORTER_OTLP_HEADERS: text })
    expect(read).toEqual({ kind: 'problems', problems: [expect.stringMatching(/^OTEL_EXPORTER_OTLP_HEADERS must be/)] })
  },
)
