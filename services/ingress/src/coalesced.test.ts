import { Corrections } from '@weir/decide/correct/corrections.ts'
import { DecisionService, type DecisionServiceParts } from '@weir/decide/decision-service.ts'
import { buildDecisionRequest } from '@weir/decide/testing/build-decision-request.ts'
import type { MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import { beforeEach, expect, test } from 'vitest'
import { memoryPorts } from './testing/memory-ingress.ts'

const policyText = `
version: 1
plans: { shared: { limits: [day, bucket], coalesce: 1s }, single: { limits: [day] }, slots: { limits: [open], coalesce: 1s }, none: { limits: [] } }
limits:
  day: { algorithm: fixed_window, size: 100, period: day }
  bucket: { algorithm: token_bucket, size: 600, window: 1m, burst: 10, mode: shadow }
  large: { algorithm: fixed_window, size: 50500, period: day, thresholds: [1005, 80%] }
  open: { algorithm: concurrency, size: 100 }
routes:
  - { match: GET /none, coalesce: none }
  - { match: GET /shared, coalesce: 1s }
  - { match: GET /large, coalesce: 1s, limits: [large] }
  - { match: GET /refunded, refundOn: [502] }
  - { match: GET /settled, settle: 1m }
subjects: { acme: { plan: shared }, bolt: { plan: single }, core: { plan: slots }, dash: { plan: none, ownAlerts: true } }
ownAlerts: { dash: { percents: [2%] } }
`
const { view } = memoryPorts(policyText).policy

let service: DecisionService
let parts: DecisionServiceParts
let log: MemoryDecisionLog
let nowMs: number

beforeEach(() => {
  nowMs = Date.parse('2026-11-21T12:00:10.000Z')
  const ports = memoryPorts(policyText, { nowMs: () => nowMs })
  parts = ports
  log = ports.log
  service = new DecisionService(parts)
})

function routeOf(path: string) {
  const route = view.policy.routes.find(({ template }) => template === `GET ${path}`)
  if (route === undefined) throw new Error(`no route ${path}`)
  return route
}
const ask = (given: Partial<DecisionRequest> = {}, id = 'acme') =>
  service.decide(buildDecisionRequest(view, id, { ip: '203.0.113.5', ...given }))
const times = async (count: number, what: () => Promise<unknown>) => {
  for (let n = 0; n < count; n += 1) await what()
}
const counts = () => log.records.map(({ count }) => count)

test('Admissions of a second are one record from the third on, under one id, with what was used last', async () => {
  const ids: (string | undefined)[] = []
  await times(6, async () => {
    ids.push((await ask()).id)
    nowMs += 100
  })
  expect(new Set(ids).size).toBe(3)
  expect(log.records.map(({ id }) => id)).toEqual([...new Set(ids)])
  expect(counts()).toEqual([1, 1, 4])
  const [first, , shared] = log.records
  expect(shared).toMatchObject({ outcome: 'allow', cost: 1, count: 4, charged: 'yes', ts: '2026-11-21 12:00:10.200' })
  expect(shared?.limits).toMatchObject([{ name: 'day', used: 6, remaining: 94 }, { name: 'bucket' }])
  // The day ends when it did for the first, whenever the state was taken.
  const endOf = (line: typeof first, at: number) => JSON.parse(JSON.stringify(line)).limits[0].reset_ms + at
  expect(endOf(shared, 200)).toBe(endOf(first, 0))
  nowMs += 1_000
  await times(3, ask)
  expect(counts()).toEqual([1, 1, 4, 1, 1, 1])
  expect(service.recorder.counters.admissions).toBe(5)
})

test('A record says when most was used, of a limit whose count falls too', async () => {
  await times(8, ask)
  nowMs += 500
  await ask()
  // Ten units a second come back.
  expect(log.records.at(-1)).toMatchObject({ count: 7, limits: [{ used: 9 }, { name: 'bucket', used: 8 }] })
})

test('What reaches a threshold, of the policy or of the customer, has a record of its own', async () => {
  const route = routeOf('/large')
  await ask({ route, cost: 995 }, 'dash')
  await times(22, () => ask({ route, cost: 1 }, 'dash'))
  const used = log.records.map(({ limits, count }) => [JSON.parse(JSON.stringify(limits))[0].used, count])
  // The first of each cost, the second, up to the first threshold, it, and what goes on after it.
  expect(used).toEqual([
    [995, 1],
    [996, 1],
    [997, 1],
    [1_017, 18],
    [1_005, 1],
    [1_010, 1],
  ])
})

test('A period that begins has a record of its own', async () => {
  nowMs = Date.parse('2026-11-21T23:59:59.990Z')
  const before = await ask()
  await times(3, ask)
  const next = before.decision.limits.map((state) => ({ ...state, used: 5, resetMs: 86_400_000 }))
  // Redis is ahead.
  parts = { ...parts, store: { ...parts.store, decide: async () => ({ ...before.decision, limits: next }) } }
  const ahead = new DecisionService({ ...parts })
  Object.defineProperty(ahead, 'recorder', { value: service.recorder })
  await times(2, () => ahead.decide(buildDecisionRequest(view, 'acme', { ip: '203.0.113.5' })))
  // The first of it has a record of its own.
  expect(counts()).toEqual([1, 1, 2, 1, 1])
})

/** What has records of its own. */
const own: Readonly<Record<string, Partial<DecisionRequest>>> = {
  'a plan without it': {},
  'a route that says none': { route: routeOf('/none') },
  'what the response refunds': { route: routeOf('/refunded') },
  'what can be settled': { route: routeOf('/settled') },
  'a check with settle': { settleMs: 60_000 },
  'what a meter measures': { meter: 'chat' },
  'what has units': { units: new Map([['tokens', 3]]) },
}

test.each(Object.entries(own))('%s has a record each', async (name, given) => {
  await times(5, () => ask({ ...given }, name === 'a plan without it' ? 'bolt' : 'acme'))
  expect(counts()).toEqual([1, 1, 1, 1, 1])
})

test('Slots, and keys that make a request idempotent, have a record each', async () => {
  await times(5, () => ask({ entryPoint: 'proxy' }, 'core'))
  for (const idempotencyKey of ['a', 'b', 'c', 'd', 'e']) await ask({ idempotencyKey })
  expect(counts()).toEqual(Array(10).fill(1))
})

test('A route shares where the plan does not, and what differs in its method or cost is apart', async () => {
  const route = routeOf('/shared')
  await times(4, () => ask({ route }, 'bolt'))
  await times(4, () => ask({ route, method: 'HEAD' }, 'bolt'))
  await times(4, () => ask({ route, cost: 2 }, 'bolt'))
  expect(log.records.map(({ method, cost, count }) => [method, cost, count])).toEqual(
    [
      ['GET', 1],
      ['HEAD', 1],
      ['GET', 2],
    ].flatMap((one) => [1, 1, 2].map((count) => [...one, count])),
  )
})

test('A shared record that the journal has closed is followed by one of its own, and by another', async () => {
  await times(4, ask)
  log.closeCoalesced()
  await times(3, ask)
  expect(counts()).toEqual([1, 1, 2, 1, 2])
})

test('What a stalled disk writes after all is given back once for each that was refused', async () => {
  await times(3, ask)
  const corrections = new Corrections(log)
  service = new DecisionService({ ...parts, corrections })
  await times(3, ask)
  log.isOverdue = true
  const late = await Promise.all([ask(), ask()])
  expect(late.map(({ decision }) => decision.reason)).toEqual(['journal_full', 'journal_full'])
  log.endStall(true)
  await new Promise(setImmediate)
  const corrected = log.records.filter(({ corrects }) => corrects !== undefined)
  expect(corrected).toMatchObject([
    { adjustment: -1, charged: 'no' },
    { adjustment: -1, charged: 'no' },
  ])
  expect(new Set(corrected.map(({ id }) => id)).size).toBe(2)
  const [today] = (await ask({ peek: true })).decision.limits
  expect(today?.used).toBe(6)
})

test('What a full journal does not take is refused, given back, and counted as missed', async () => {
  await times(4, ask)
  log.isFull = true
  log.closeCoalesced()
  expect((await ask()).decision.reason).toBe('journal_full')
  expect([log.missed, counts()]).toEqual([1, [1, 1, 2]])
})
