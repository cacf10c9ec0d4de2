import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, it } from 'vitest'
import { startStack } from '../support/failure/stack.ts'
import { forFile } from '../support/opened.ts'
import { openOtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts'

const key = 'weir_traced_acme_0123456789abcdef'
const sha256 = createHash('sha256').update(key).digest('hex')

/** An HTTP server that keeps the headers of what it is asked, and answers 200. */
async function openServer() {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer(({ headers }, response) => {
    seen.push(headers)
    response.end('{}')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

let [upstream, receiver]: Awaited<ReturnType<typeof openServer>>[] = []
const collector = await forFile(openOtlpReceiver())
upstream = await openServer()
receiver = await openServer()
const stack = await forFile(
  startStack({
    // Nothing is traced but what the proxy in front has sampled.
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0' },
    policy: `version: 1
identity: { trustedProxies: [127.0.0.1] }
plans: { small: { limits: [day] } }
limits: { day: { algorithm: fixed_window, size: 1000, period: day, thresholds: [1], onUnavailable: allow } }
routes: [{ match: "GET /orders/:id" }]
upstreams: { shop: { url: "${upstream.url}", hosts: ["*"] } }
endpoints: { hook: { url: "${receiver.url}", secretEnv: WEIR_DEMO_WEBHOOK_SECRET, allowPrivate: true } }
subjects: { acme: { plan: small, keys: [{ sha256: "${sha256}" }] } }
`,
  }),
)
afterAll(async () => {
  for (const { server } of [upstream, receiver].flatMap((one) => one ?? [])) server.close()
})

/** Asks the proxy from an address of this machine, and returns the decision's id. */
const ask = (localAddress: string, headers: Readonly<Record<string, string>>) =>
  new Promise<string>((done, fail) => {
    const url = `http://127.0.0.1:${stack.ports.ingress}/orders/7`
    request(url, { localAddress, agent: false, headers: { 'x-api-key': key, ...headers } }, (answer) => {
      answer.resume().once('end', () => done(String(answer.headers['weir-decision'])))
    })
      .once('error', fail)
      .end()
  })

const own = ['GET /orders/:id', 'decide', 'journal append', 'proxy']
const behind = ['send weir.decisions.v1', 'process weir.decisions.v1', 'insert decisions', 'raise alert', 'deliver']

const newParent = () => ({ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') })

it('one trace leads from a client to the webhook, although the ingress is killed before Kafka has the decision', async () => {
  const parent = newParent()
  const traceparent = `00-${parent.traceId}-${parent.spanId}-01`
  await stack.hold('kafka')
  const decision = await ask('127.0.0.1', { traceparent, tracestate: 'vendor=1' })
  expect([...(await collector.trace(parent.traceId, own, 10_000)).keys()].sort()).toEqual([...own].sort())
  await stack.hold('ingress')
  await stack.release('kafka')
  await stack.release('ingress')
  const found = await collector.trace(parent.traceId, [...own, ...behind], 120_000)
  expect([...found.keys()].sort()).toEqual([...own, ...behind].sort())
  const span = (name: string): ReceivedSpan => {
    const [first] = found.get(name) ?? []
    if (first === undefined) throw new Error(`the trace has no ${name}`)
    return first
  }

  const door = span('GET /orders/:id')
  const about = { 'weir.outcome': 'allow', 'weir.reason': 'ok', 'weir.plan': 'small', 'weir.decision.id': decision }
  expect(door).toMatchObject({ parentSpanId: parent.spanId, service: 'weir-ingress', attributes: about })
  expect(JSON.stringify([...found.values()])).not.toContain('acme')
  const parents = {
    decide: door,
    'journal append': door,
    proxy: door,
    'send weir.decisions.v1': door,
    'process weir.decisions.v1': door,
    'insert decisions': span('process weir.decisions.v1'),
    'raise alert': door,
    deliver: span('raise alert'),
  }
  for (const [name, { spanId }] of Object.entries(parents)) {
    expect([name, span(name).parentSpanId]).toEqual([name, spanId])
  }
  expect(span('send weir.decisions.v1').attributes).toMatchObject({ 'weir.journal.adopted': true })
  // Each is of one process's clock, whose two ways of telling the time may be milliseconds apart.
  const order = [
    door.startMs,
    span('decide').startMs,
    span('decide').endMs,
    span('journal append').endMs,
    span('proxy').endMs,
    span('send weir.decisions.v1').endMs,
    span('process weir.decisions.v1').endMs,
  ]
  for (const [at, ms] of order.slice(1).entries()) expect(ms).toBeGreaterThanOrEqual((order[at] ?? 0) - 20)
  const [process, insert] = [span('process weir.decisions.v1'), span('insert decisions')]
  expect(process.startMs <= insert.startMs && insert.startMs <= insert.endMs && insert.endMs <= process.endMs).toBe(
    true,
  )
  expect(span('deliver').startMs).toBeGreaterThanOrEqual(span('raise alert').startMs)

  // The block has a trace of its own; each links to the other.
  const [block] = collector.spans.filter(({ spanId }) => spanId === process.links[0]?.spanId)
  expect(block).toMatchObject({ name: 'insert decisions', parentSpanId: '', attributes: { 'weir.rows': 1 } })
  expect(block?.links).toEqual([expect.objectContaining({ traceId: parent.traceId, spanId: door.spanId })])
  // What is behind Weir goes on with it.
  expect(upstream?.seen.at(-1)).toMatchObject({
    traceparent: `00-${parent.traceId}-${span('proxy').spanId}-01`,
    tracestate: 'vendor=1',
  })
  expect(receiver?.seen).toEqual([
    expect.objectContaining({ traceparent: `00-${parent.traceId}-${span('deliver').spanId}-01` }),
  ])
}, 240_000)

it("an untrusted peer's sampled flag changes nothing: no span, and its header goes on as it came", async () => {
  const [untrusted, trusted] = [newParent(), newParent()]
  const headerOf = ({ traceId, spanId }: typeof untrusted) => `00-${traceId}-${spanId}-01`
  await ask('127.0.0.2', { traceparent: headerOf(untrusted), tracestate: 'vendor=2' })
  expect(upstream?.seen.at(-1)).toMatchObject({ traceparent: headerOf(untrusted), tracestate: 'vendor=2' })
  await ask('127.0.0.1', { traceparent: headerOf(trusted).replace(/1$/, '0') })
  // Exported later than both.
  const last = newParent()
  await ask('127.0.0.1', { traceparent: headerOf(last) })
  expect((await collector.trace(last.traceId, own, 10_000)).size).toBeGreaterThan(0)
  const traced = () => collector.spans.filter(({ traceId }) => [untrusted.traceId, trusted.traceId].includes(traceId))
  expect(traced()).toEqual([])
  expect(await waitUntil(() => traced().length > 0, { deadlineMs: 3_000 })).not.toBe(true)
})
