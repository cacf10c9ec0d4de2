import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, onTestFinished, test } from 'vitest'
import { openMemoryIngress } from '../testing/memory-ingress.ts'

async function open() {
  const { grpc } = await openMemoryIngress('{ version: 1, plans: {}, limits: {} }', { grpcNeedsNoToken: true })
  const [port = 0] = await freePorts(1)
  await grpc.listen({ host: '127.0.0.1', port, reusePort: false })
  onTestFinished(() => grpc.close())
  return () => {
    const session = connect(`http://127.0.0.1:${port}`).on('error', () => undefined)
    onTestFinished(() => session.destroy())
    return session
  }
}

const service = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'

/** Begins a call with a message of this length, of which this comes. */
function begin(session: ClientHttp2Session, length: number, sent: string, path = service) {
  const head = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  const call = session.request(head).on('error', () => undefined)
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(length, 1)
  call.write(Buffer.concat([prefix, Buffer.from(sent)]))
  return call
}

async function statusOf(call: ReturnType<typeof begin>): Promise<unknown> {
  const [head] = await once(call, 'response')
  if (head['grpc-status'] !== undefined) return head['grpc-status']
  const [trailers] = await once(call.resume(), 'trailers')
  return trailers['grpc-status']
}

test('A connection that leaves its messages unfinished ends, others are served meanwhile, and each has 100 calls', async () => {
  const openSession = await open()
  const [many, few] = [openSession(), openSession()]
  await once(many, 'remoteSettings')
  expect(many.remoteSettings.maxConcurrentStreams).toBe(100)
  // A stream reads as much as its window has; three of them are beyond the bound.
  for (let n = 0; n < 100; n += 1) begin(many, 2_000_000, 'half'.repeat(15_000))
  begin(few, 100, 'half')
  // Not by `once` of node:events: it rejects where the connection is reset, which is an end as good as any.
  await new Promise((closed) => many.once('close', closed))
  const probe = begin(few, 0, '', '/grpc.health.v1.Health/Check')
  probe.end()
  expect([await statusOf(probe), few.destroyed]).toEqual(['0', false])
}, 20_000)

test('Of many connections with some unfinished messages each, those beyond 64 MB end', async () => {
  const openSession = await open()
  const sessions = Array.from({ length: 30 }, openSession)
  let ended = 0
  for (const session of sessions) {
    session.once('close', () => (ended += 1))
    for (let n = 0; n < 60; n += 1) begin(session, 2_000_000, 'half'.repeat(15_000))
  }
  await expect.poll(() => ended, { timeout: 8_000, interval: 20 }).toBeGreaterThan(9)
  const probe = begin(openSession(), 0, '', '/grpc.health.v1.Health/Check')
  probe.end()
  expect([await statusOf(probe), ended < sessions.length]).toEqual(['0', true])
}, 20_000)
