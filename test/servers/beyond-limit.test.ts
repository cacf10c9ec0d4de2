import { once } from 'node:events'
import { connect } from 'node:net'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test } from 'vitest'
import { startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { send } from '../support/gateways/send.ts'
import { openIngressStack } from '../support/ingress-stack.ts'
import { forFile } from '../support/opened.ts'
import { readMetric } from '../support/read-metric.ts'
import { countOf, readDecisions } from '../support/servers/read-decisions.ts'
import type { RunningIngress } from '../support/start-ingress.ts'

const subject = (plan: string, id: string) => [id, { plan, keys: [{ sha256: sha256(id) }] }]
const policyOf = (upstream: string) => ({
  version: 1,
  plans: { stop: { limits: ['stop'] }, own: { limits: ['own'] } },
  limits: {
    stop: {
      algorithm: 'token_bucket',
      size: 2,
      window: '1s',
      burst: 1,
      by: ['global'],
      onExceed: { delay: '60s', queue: 100 },
    },
    own: { algorithm: 'sliding_log', size: 100, window: '1m', onExceed: 'delay' },
  },
  upstreams: { api: { url: upstream } },
  subjects: Object.fromEntries([subject('own', 'own'), ...['a', 'b', 'c'].map((id) => subject('stop', `stop-${id}`))]),
})

const upstream = await forFile(startPlainUpstream())
const stack = await forFile(openIngressStack(policyOf(upstream.url)))

/** The status that a client gets, 0 for none. */
async function statusOf(ingress: RunningIngress, key: string): Promise<number> {
  const { hostname, port } = new URL(ingress.proxy)
  const socket = connect(Number(port), hostname).on('error', () => undefined)
  socket.write(`GET /x HTTP/1.1\r\nhost: api.test\r\nconnection: close\r\nx-api-key: ${key}\r\n\r\n`)
  let said = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    said += chunk
  })
  await once(socket, 'close')
  return Number(said.slice(9, 12))
}

test('At a stop the waiting requests are served at the pace of their limit, the rest is denied within the grace, and none is left unanswered', async () => {
  const ingress = await stack.start()
  const keys = Object.entries({ a: 40, b: 8, c: 2 }).flatMap(([id, count]) => Array(count).fill(`stop-${id}`))
  const clients = keys.map((key) => statusOf(ingress, key))
  const areWaiting = async () => (await readMetric(ingress.ops, 'weir_requests_waiting')) >= 45
  await waitUntil(areWaiting, { deadlineMs: 20_000, everyMs: 10 })
  const startedAt = performance.now()
  await ingress.close()
  const tookMs = performance.now() - startedAt
  const statuses = await Promise.all(clients)
  const count = (wanted: number) => statuses.filter((status) => status === wanted).length
  expect(count(200) + count(429)).toBe(50)
  // 2 a second for 8 s, and those before.
  expect(count(200)).toBeGreaterThan(15)
  expect(count(200)).toBeLessThan(45)
  expect(tookMs).toBeGreaterThan(7_000)
  expect(tookMs).toBeLessThan(20_000)
  // Its journal died with it, but for what was published: everything, at an ordered stop.
  const isOfStop = ({ subject }: { readonly subject: string }) => subject.startsWith('stop')
  const records = await readDecisions(stack.kafka, isOfStop, (found) => countOf(found) >= 50)
  expect(countOf(records)).toBe(50)
  expect(countOf(records.filter(({ outcome }) => outcome === 'allow'))).toBe(count(200))
}, 60_000)

test('a pause that one process receives holds in the others immediately', async () => {
  const [one, other] = await Promise.all([stack.start(), stack.start()])
  const headers = { 'content-type': 'application/json', 'x-api-key': 'own' }
  const post = async ({ api }: RunningIngress, path: string, body: object) =>
    JSON.parse((await send(api, { method: 'POST', path, headers, body: Buffer.from(JSON.stringify(body)) })).body)
  expect(await post(other, '/v1/check', {})).toMatchObject({ allowed: true })
  expect(await post(one, '/v1/pause', { limit: 'own', for: '30s' })).toEqual({ limit: 'own', retry_after_ms: 30_000 })
  const checked = await post(other, '/v1/check', {})
  expect(checked).toMatchObject({ allowed: false, reason: 'blocked', denied_by: 'own', on_exceed: 'delay' })
  expect(await readMetric(other.ops, 'weir_limit_exceeded_actions_total{action="deny"}')).toBe(1)
  expect(checked.retry_after_ms).toBeGreaterThan(25_000)
  expect((await post(one, '/v1/pause', { limit: 'own', for: '1s' })).retry_after_ms).toBeGreaterThan(20_000)
})
