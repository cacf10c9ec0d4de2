import type { MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import type { EndedSpan } from '@weir/runtime/tracing.ts'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openMemoryIngress, sha256 } from '../testing/memory-ingress.ts'
import { RequestTraces } from './request-trace.ts'

const policyText = `version: 1
plans: { small: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 3, window: 1m } }
subjects: { acme: { plan: small, keys: [{ sha256: "${sha256('acme-key')}" }] } }
`
const parent = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const traceparent = `00-${parent.traceId}-${parent.spanId}-01`
const own = { 'x-api-key': 'acme-key' }
const token = { authorization: 'Bearer root' }

let spans: EndedSpan[]
let parents: unknown[]
let decisions: MemoryDecisionLog
beforeEach(() => {
  spans = []
  parents = []
})

/** The API of an ingress that traces everything. */
async function openApi(showsSubjects = false) {
  const tracing = { sample: (of: unknown) => parents.push(of) > 0, record: (span: EndedSpan) => void spans.push(span) }
  const apps = await openMemoryIngress(policyText, { traces: new RequestTraces(tracing, showsSubjects) })
  const { api } = apps
  decisions = apps.decisions
  onTestFinished(() => api.close())
  const url = await api.listen({ host: '127.0.0.1', port: 0 })
  let asked = 0
  return async (path: string, headers: Readonly<Record<string, string>>, body: object = {}) => {
    const init = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const answer = await fetch(url + path, { ...init, headers: { ...init.headers, ...headers, connection: 'close' } })
    await answer.text()
    asked += 1
    await expect.poll(() => spans.filter(({ kind }) => kind === 'server').length).toBeGreaterThanOrEqual(asked)
    return answer.headers.get('weir-decision') ?? ''
  }
}

const named = (name: string) => spans.filter((span) => span.name === name)
const recordOf = (id: string) => decisions.records.find((record) => record.id === id)

test('a trace that begins here has the id of its decision, and that of an untrusted peer is a link', async () => {
  const ask = await openApi()
  const id = await ask('/v1/check', { ...own, traceparent })
  const [door] = named('POST /v1/check')
  expect(parents).toEqual([undefined])
  expect(door).toMatchObject({ traceId: id.replaceAll('-', ''), parentSpanId: undefined, kind: 'server' })
  expect(door?.links).toEqual([expect.objectContaining(parent)])
  expect(door?.attributes).toMatchObject({ 'weir.decision.id': id, 'http.response.status_code': 200 })
  expect(recordOf(id)).toMatchObject({ trace: `${door?.traceId}-${door?.spanId}` })
  expect(JSON.stringify(spans)).not.toContain('acme')
})

test('a token that checks any subject brings its own trace, in which refusals have a record of their own', async () => {
  const ask = await openApi(true)
  const headers = { ...token, traceparent }
  const ids = [1, 2, 3, 4, 5].map(() => ask('/v1/check', headers, { subject: 'acme' }))
  expect(new Set(await Promise.all(ids)).size).toBe(5)
  expect(parents).toEqual(Array(5).fill('sampled'))
  const doors = named('POST /v1/check')
  expect(new Set(doors.map(({ traceId, parentSpanId }) => `${traceId} ${parentSpanId}`))).toEqual(
    new Set([`${parent.traceId} ${parent.spanId}`]),
  )
  const outcomes = doors.map(({ attributes }) => `${attributes['weir.outcome']} ${attributes['weir.subject']}`)
  expect(outcomes.sort()).toEqual([...Array(3).fill('allow acme'), 'deny acme', 'deny acme'])
  expect(decisions.records.map(({ count, trace }) => [count, String(trace).slice(0, 32)])).toEqual(
    Array(5).fill([1, parent.traceId]),
  )
  await ask('/v1/check', { ...headers, traceparent: traceparent.replace(/1$/, '0') }, { subject: 'acme' })
  expect(parents.at(-1)).toBe('unsampled')
})

test('equal refusals that cost nothing share a record, but those that are traced do not', async () => {
  const ask = await openApi()
  const ids = [
    await ask('/v1/authorize/orders/7', { 'x-api-key': 'wrong' }),
    await ask('/v1/authorize/orders/7', { 'x-api-key': 'wrong' }),
  ]
  expect(decisions.records.map(({ id, count, reason }) => [id, count, reason])).toEqual(
    ids.map((id) => [id, 1, 'unauthorized']),
  )
  expect(named('POST /v1/authorize').map(({ traceId }) => traceId)).toEqual(ids.map((id) => id.replaceAll('-', '')))
})

test('each check of a batch is a span of the one request, and a request without a decision has a trace, too', async () => {
  const ask = await openApi()
  await ask('/v1/check/batch', token, { checks: [{ subject: 'acme' }, { subject: 'acme' }, { subject: 'nobody' }] })
  const [door] = named('POST /v1/check/batch')
  const [first, second] = decisions.records
  expect(door?.traceId).toBe(String(first?.id).replaceAll('-', ''))
  expect(named('decide').map(({ attributes }) => attributes['weir.decision.id'])).toEqual([first?.id, second?.id])
  expect(named('journal append').map(({ parentSpanId }) => parentSpanId)).toEqual([door?.spanId, door?.spanId])
  const before = spans.length
  await ask('/v1/check', token, { subject: 'nobody' })
  expect(spans.slice(before).map(({ name, traceId }) => [name, /^[0-9a-f]{32}$/.test(traceId)])).toEqual([
    ['POST /v1/check', true],
  ])
})
