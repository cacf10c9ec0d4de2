import type { RecordClaim } from '@weir/core/limits/limit-store.ts'
import { Corrections } from '@weir/decide/correct/corrections.ts'
import { DecisionService, type DecisionServiceParts } from '@weir/decide/decision-service.ts'
import type { IdempotencyRecords } from '@weir/decide/ports.ts'
import { buildDecisionRequest } from '@weir/decide/testing/build-decision-request.ts'
import type { MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { beforeEach, expect, test } from 'vitest'
import { createLivePolicy } from './policy-view.ts'
import { memoryPorts } from './testing/memory-ingress.ts'

const policyText = `
version: 1
plans: { free: { limits: [trial, minute] }, watched: { limits: [trial] }, both: { limits: [soft, trial] } }
limits:
  trial: { algorithm: sliding_log, size: 1, window: 1m, mode: shadow }
  soft: { algorithm: fixed_window, size: 1, window: 1m, onExceed: degrade }
  minute: { algorithm: fixed_window, size: 3, window: 1m, block: 10m }
  tenant: { algorithm: token_bucket, size: 2, window: 1m, by: [subject, header:x-tenant] }
routes: [{ match: GET /t, limits: [tenant] }]
subjects: { acme: { plan: free, limits: { minute: { size: 4 } } }, globex: { plan: free }, initech: { plan: watched }, hooli: { plan: both } }
`

const { view } = memoryPorts(policyText).policy
const { policy } = view

let decisionService: DecisionService
let parts: DecisionServiceParts
let log: MemoryDecisionLog
let nowMs: number
let isStale: boolean

beforeEach(() => {
  nowMs = Date.parse('2026-11-21T12:00:10.000Z')
  isStale = false
  const ports = memoryPorts(policyText, { nowMs: () => nowMs })
  parts = { ...ports, policy: createLivePolicy(policy, () => isStale) }
  log = ports.log
  decisionService = new DecisionService(parts)
})

const fromCheck = { entryPoint: 'check', startedAt: 0 } as const

const ask = ({ id = 'globex', ...given }: Partial<DecisionRequest> & { readonly id?: string } = {}) =>
  buildDecisionRequest(view, id, given)

test('what a shadow limit would have refused is allowed, and recorded under its name', async () => {
  await decisionService.decide(ask())
  const second = await decisionService.decide(ask())
  expect(second.decision).toMatchObject({ allowed: true, reason: 'ok', shadowedBy: 'trial' })
  expect(log.records).toMatchObject([
    { outcome: 'allow', reason: 'ok', mode: 'enforce', denied_by: '', charged: 'yes' },
    { outcome: 'allow', reason: 'limit', mode: 'shadow', denied_by: 'trial', shadowed_by: 'trial', charged: 'yes' },
  ])
  expect(log.records[0]).not.toHaveProperty('shadowed_by')
  expect(log.records[1]?.limits).toMatchObject([{ name: 'trial', used: 1 }, { name: 'minute' }])
})

test('what one limit degrades and another in shadow would have refused is recorded under both names', async () => {
  for (let n = 0; n < 2; n += 1) await decisionService.decide(ask({ id: 'hooli' }))
  expect(log.records[1]).toMatchObject({
    outcome: 'allow',
    reason: 'limit',
    mode: 'enforce',
    denied_by: 'soft',
    shadowed_by: 'trial',
  })
})

test('a refusal is recorded as one, whatever a shadow limit thinks of it too', async () => {
  for (let n = 0; n < 4; n += 1) await decisionService.decide(ask())
  expect(log.records.at(-1)).toMatchObject({ outcome: 'deny', reason: 'limit', mode: 'enforce', denied_by: 'minute' })
})

test('a caller that exceeds a limit with a block stays blocked for its time, also in the next window', async () => {
  for (let n = 0; n < 4; n += 1) await decisionService.decide(ask())
  nowMs += 60_000
  const blocked = await decisionService.decide(ask())
  expect(blocked.decision).toMatchObject({ allowed: false, reason: 'blocked', deniedBy: 'minute' })
  expect(blocked.decision.retryAfterMs).toBe(540_000)
  nowMs += 540_000
  expect((await decisionService.decide(ask())).decision.allowed).toBe(true)
})

test("a subject's own version of a limit decides for it, and counts under the limit's name", async () => {
  const outcomes = []
  for (let n = 0; n < 5; n += 1) outcomes.push((await decisionService.decide(ask({ id: 'acme' }))).decision.allowed)
  expect(outcomes).toEqual([true, true, true, true, false])
  expect((await decisionService.decide(ask({ peek: true }))).decision.limits[1]).toMatchObject({
    name: 'minute',
    size: 3,
    used: 0,
  })
})

test('a limit of a route applies to its requests on top of the plan, apart for every value of the header', async () => {
  const [route] = policy.routes
  if (route === undefined) throw new Error('no route')
  const from = async (tenant: string) => {
    const named = new Map([['header:x-tenant', tenant]])
    return (await decisionService.decide(ask({ id: 'initech', route, named }))).decision.deniedBy
  }
  expect([await from('a'), await from('a'), await from('b'), await from('a')]).toEqual(['', '', '', 'tenant'])
  expect((await decisionService.decide(ask({ id: 'initech' }))).limits?.map(({ name }) => name)).toEqual(['trial'])
})

test('an idempotency key is charged and recorded once, and answered with the first id', async () => {
  const first = await decisionService.decide(ask({ idempotencyKey: 'order-1' }))
  const again = await decisionService.decide(ask({ idempotencyKey: 'order-1' }))
  const other = await decisionService.decide(ask({ idempotencyKey: 'order-2' }))
  expect(again.id).toBe(first.id)
  expect(again.decision.allowed).toBe(true)
  expect(other.id).not.toBe(first.id)
  expect(log.records.map(({ id }) => id)).toEqual([first.id, other.id])
  expect(other.decision.limits.find(({ name }) => name === 'minute')).toMatchObject({ used: 2 })
})

const unrecorded = { allowed: false, reason: 'journal_full', charged: 'no', retryAfterMs: 5_000 }
const unauthenticated = () =>
  decisionService.rejectUnauthenticated({
    ...fromCheck,
    ip: '192.0.2.1',
    route: unmatchedRoute,
    method: 'GET',
    retryAfterMs: 0,
  })
const used = async () => (await decisionService.decide(ask({ peek: true }))).decision.limits.map((limit) => limit.used)

test('what cannot be recorded is refused without an id, and its charge is given back', async () => {
  log.isFull = true
  const refused = [await decisionService.decide(ask()), await unauthenticated()]
  for (const { id, decision } of refused) expect([id, decision]).toMatchObject([undefined, unrecorded])
  expect([await used(), log.missed]).toEqual([[0, 0], 2])
  log.isFull = false
  const { id } = await decisionService.decide(ask())
  expect(log.records).toMatchObject([{ id, outcome: 'allow', count: 1 }])
})

test('a refusal that cannot be recorded says so, and that it was one; a request that would have been admitted was none', async () => {
  for (let n = 0; n < 3; n += 1) await decisionService.decide(ask())
  log.isFull = true
  const refused = [
    await decisionService.decide(ask()),
    await unauthenticated(),
    await decisionService.decide(ask({ id: 'acme' })),
  ]
  for (const { id, decision } of refused) expect([id, decision]).toMatchObject([undefined, unrecorded])
  expect(refused.map(({ isKnownRefusal }) => isKnownRefusal === true)).toEqual([true, true, false])
})

test('where a full journal admits, what cannot be recorded is answered as decided, without an id, and stays charged', async () => {
  decisionService = new DecisionService({ ...parts, onJournalFull: 'admit' })
  for (let n = 0; n < 2; n += 1) await decisionService.decide(ask())
  log.isFull = true
  const [admitted, refused, nobody] = [
    await decisionService.decide(ask()),
    await decisionService.decide(ask()),
    await unauthenticated(),
  ]
  expect([admitted.id, admitted.decision]).toMatchObject([undefined, { allowed: true, charged: 'yes' }])
  expect([refused.id, refused.decision]).toMatchObject([undefined, { allowed: false, reason: 'limit' }])
  expect([nobody.id, nobody.decision]).toMatchObject([undefined, { allowed: false, reason: 'unauthorized' }])
  expect([await used(), log.missed]).toEqual([[1, 3], 3])
  log.isFull = false
  log.isOverdue = true
  const late = await decisionService.decide(ask({ id: 'acme' }))
  expect([late.id, late.decision.allowed]).toEqual([undefined, true])
  log.endStall(true)
  await decisionService.decide(ask({ peek: true }))
  expect(log.records.at(-1)).toMatchObject({ subject: 'acme', outcome: 'allow', count: 1 })
})

test('what the disk did not take in time is not answered as decided, and has no record of another kind', async () => {
  log.isStalled = true
  const refused = [await decisionService.decide(ask()), await unauthenticated()]
  for (const { id, decision } of refused) expect([id, decision]).toMatchObject([undefined, unrecorded])
  expect(await used()).toEqual([0, 0])
  log.isStalled = false
  log.records.length = 0
  const { id } = await decisionService.decide(ask())
  expect(log.records).toMatchObject([{ id, outcome: 'allow' }])
})

test('what a stalled disk writes after all is the one record of its request, and a correction refunds its units', async () => {
  log.isOverdue = true
  const { id, decision } = await decisionService.decide(ask())
  expect([id, decision]).toMatchObject([undefined, unrecorded])
  log.endStall(true)
  await decisionService.decide(ask({ peek: true }))
  const [taken] = log.records
  expect(log.records).toMatchObject([
    { outcome: 'allow', cost: 1, count: 1 },
    { corrects: taken?.id, adjustment: -1, count: 0, charged: 'no' },
  ])
})

test.each([
  ['counted with are taken back', undefined, { units: { tokens: 7, calls: 1 } }, { units: { tokens: -7, calls: -1 } }],
  ['holding are settled to none', 60_000, { held: { tokens: 7, calls: 1 } }, { units: { tokens: 0, calls: 0 } }],
])('the units that an admission was %s once its request used none', async (_, settleMs, admission, correction) => {
  const units = new Map([
    ['tokens', 7],
    ['calls', 1],
  ])
  const measured = { meter: 'chat', dims: { model: 'small' } }
  log.isOverdue = true
  await decisionService.decide(ask({ units, settleMs, ...measured }))
  log.endStall(true)
  await decisionService.decide(ask({ peek: true }))
  expect(log.records).toMatchObject([
    { ...measured, ...admission },
    { ...measured, ...correction, corrects: log.records[0]?.id, basis: 'reported' },
  ])
})

test('the correction of an admission that was written late is given to the journal until it is written, once', async () => {
  const corrections = new Corrections(log)
  decisionService = new DecisionService({ ...parts, corrections })
  log.isOverdue = true
  await decisionService.decide(ask())
  log.endStall(true)
  log.isFull = true
  await used()
  expect(log.records).toHaveLength(1)
  log.isFull = false
  expect(corrections.close()).toBe(0)
  await used()
  expect(log.records).toMatchObject([{ outcome: 'allow' }, { corrects: log.records[0]?.id, adjustment: -1 }])
  expect(corrections.counters).toEqual({ recorded: 1, lost: 0 })
})

test('a repeat of an admission whose write is in doubt is put off, and has no record of its own once that is written', async () => {
  const request = ask({ idempotencyKey: 'order-1' })
  log.isOverdue = true
  const first = await decisionService.decide(request)
  log.isOverdue = false
  expect((await decisionService.decide(request)).decision).toMatchObject({ allowed: false, reason: 'unavailable' })
  log.endStall(true)
  const again = await decisionService.decide(request)
  expect([first.id, again.decision.allowed]).toEqual([undefined, true])
  expect(log.records.filter(({ outcome }) => outcome === 'allow')).toMatchObject([{ id: again.id }])
})

test('unauthenticated callers are counted in one record a second for each address, and in one of all beyond 500', async () => {
  const from = (ip: string, method = 'GET') =>
    decisionService.rejectUnauthenticated({ ...fromCheck, ip, route: unmatchedRoute, method, retryAfterMs: 0 })
  const ids = [
    await from('192.0.2.1'),
    await from('192.0.2.2'),
    await from('192.0.2.1', 'PUT'),
    await from('192.0.2.1'),
  ]
  nowMs += 1_000
  ids.push(await from('192.0.2.1'))
  expect(log.records).toMatchObject([
    { id: ids[0]?.id, subject: '_unauthenticated', ip: '192.0.2.1', count: 2, charged: 'no' },
    { id: ids[1]?.id, ip: '192.0.2.2', count: 1 },
    { id: ids[2]?.id, method: 'PUT', count: 1 },
    { id: ids[4]?.id, ip: '192.0.2.1', count: 1, ts: '2026-11-21 12:00:11.000' },
  ])
  expect(ids[0]?.id).toBe(ids[3]?.id)
  const flood = []
  for (let at = 0; at < 1_000; at += 1) flood.push(await from(`198.18.${at >> 8}.${at & 255}`))
  expect(new Set(flood.map(({ id }) => id)).size).toBe(500)
})

test('a repeat of what could not be recorded is recorded before it is admitted, and then once', async () => {
  const request = ask({ idempotencyKey: 'order-1' })
  log.isFull = true
  const refused = [await decisionService.decide(request), await decisionService.decide(request)]
  expect(refused.map(({ decision }) => decision.reason)).toEqual(['journal_full', 'journal_full'])
  log.isFull = false
  const admitted = [await decisionService.decide(request), await decisionService.decide(request)]
  expect(admitted.map(({ decision }) => decision.allowed)).toEqual([true, true])
  expect(log.records.filter(({ outcome }) => outcome === 'allow')).toMatchObject([
    { id: admitted[0]?.id, charged: 'yes', count: 1 },
  ])
  expect(admitted[1]?.id).toBe(admitted[0]?.id)
  expect(admitted[1]?.decision.limits[1]).toMatchObject({ used: 1 })
})

test('of one key asked twice at the same time one is recorded, and both are answered with its id', async () => {
  const request = ask({ idempotencyKey: 'order-1' })
  const [first, again] = await Promise.all([decisionService.decide(request), decisionService.decide(request)])
  expect(first.decision.allowed && again.decision.allowed).toBe(true)
  expect(log.records.map(({ id }) => id)).toEqual([first.id])
  expect(again.id).toBe(first.id)
})

test('another process records what the first did not, and refuses for a moment what the first may be recording', async () => {
  const request = ask({ idempotencyKey: 'order-1' })
  log.isFull = true
  await decisionService.decide(request)
  log.isFull = false
  const claims: RecordClaim[] = [{ kind: 'unknown' }, { kind: 'claimed' }, { kind: 'recorded', recordId: 'its record' }]
  const marked: string[] = []
  const idempotencyRecords: IdempotencyRecords = {
    mark: (_subject, _admissionId, recordId) => void marked.push(recordId),
    hold: () => () => undefined,
    claim: async () => claims.shift() ?? { kind: 'unknown' },
  }
  const other = new DecisionService({ ...parts, idempotencyRecords })
  const answers = [await other.decide(request), await other.decide(request), await other.decide(request)]
  expect(answers.map(({ decision }) => decision.reason)).toEqual(['unavailable', 'ok', 'ok'])
  expect(answers[0]?.decision.retryAfterMs).toBe(1_000)
  expect(answers[2]?.id).toBe('its record')
  expect(marked).toEqual([answers[1]?.id])
  expect(log.records.filter(({ outcome }) => outcome === 'allow').map(({ id }) => id)).toEqual(marked)
})

test('an idempotency key of what meets no limit leaves nothing to be kept, so that the bound of markers holds', async () => {
  const marked: string[] = []
  const mark: IdempotencyRecords['mark'] = (_subject, _admissionId, recordId) => void marked.push(recordId)
  const idempotencyRecords: IdempotencyRecords = {
    mark,
    hold: () => () => undefined,
    claim: async () => ({ kind: 'unknown' }),
  }
  const other = new DecisionService({ ...parts, idempotencyRecords })
  const free = ask({ idempotencyKey: 'order-1', limits: [] })
  const answers = [await other.decide(free), await other.decide(free)]
  expect(log.records.map(({ id }) => id)).toEqual(answers.map(({ id }) => id))
  expect(marked).toEqual([])
  const settled = await other.decide({ ...free, settleMs: 60_000 })
  expect(marked).toEqual([settled.id])
})

test('while the policy is stale every request is denied, charged nothing and recorded, and none is called unauthenticated', async () => {
  isStale = true
  const [known, unauthenticated] = [
    await decisionService.decide(ask()),
    await decisionService.rejectUnauthenticated({
      ...fromCheck,
      ip: '192.0.2.1',
      route: unmatchedRoute,
      method: 'GET',
      retryAfterMs: 0,
    }),
  ]
  for (const { decision } of [known, unauthenticated]) {
    expect(decision).toMatchObject({ allowed: false, reason: 'unavailable', charged: 'no', retryAfterMs: 5_000 })
  }
  expect(log.records).toMatchObject([
    { subject: 'globex', outcome: 'deny', reason: 'unavailable' },
    { subject: '_unauthenticated', outcome: 'deny', reason: 'unavailable' },
  ])
  isStale = false
  const [first] = (await decisionService.decide(ask())).decision.limits
  expect(first).toMatchObject({ name: 'trial', used: 1 })
})

/** Cells that are not 0. */
const countsOf = (cells: {
  entries(): Iterable<readonly [string, { readonly allow: number; readonly deny: number }]>
}) =>
  [...cells.entries()]
    .filter(([, { allow, deny }]) => allow + deny > 0)
    .map(([name, { allow, deny }]) => [name, allow, deny])

test('Every answered decision is counted once, by entry point, source, route, plan and limit; a peek is not', async () => {
  const { metrics } = decisionService
  for (let n = 0; n < 4; n += 1) await decisionService.decide(ask({ entryPoint: 'proxy' }))
  await decisionService.decide(ask({ peek: true }))
  await unauthenticated()
  isStale = true
  await decisionService.decide(ask())
  isStale = false
  log.isFull = true
  await decisionService.decide(ask({ id: 'initech' }))
  const { proxy, check } = metrics.entryPoints
  expect([proxy.allow.ok, proxy.deny.limit, proxy.duration.count]).toEqual([3, 1, 4])
  expect([check.deny.unauthorized, check.deny.unavailable, check.deny.journal_full, check.duration.count]).toEqual([
    1, 1, 1, 3,
  ])
  expect(metrics.sources).toMatchObject({ redis: 5, none: 2 })
  expect(countsOf(metrics.routes)).toEqual([['*', 3, 4]])
  expect(countsOf(metrics.plans)).toEqual([
    ['free', 3, 2],
    ['watched', 0, 1],
  ])
  expect(countsOf(metrics.limits)).toEqual([
    ['trial', 5, 0],
    ['minute', 3, 1],
  ])
  expect([...metrics.limits.find('minute').utilization.cells]).toEqual([1, 1, 0, 2, 0, 1 / 3 + 2 / 3 + 2])
})

test('A limit that no policy names, as a gateway may ask for, is counted among others', async () => {
  const [limit] = policy.limits.values()
  if (limit === undefined) throw new Error('no limit')
  await decisionService.decide(ask({ limits: [{ ...limit, name: 'of-the-caller' }] }))
  expect(countsOf(decisionService.metrics.limits)).toEqual([['_other', 1, 0]])
})
