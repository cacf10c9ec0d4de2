import { createBoundaryCache } from '@weir/core/policy/boundary-cache.ts'
import { unmatchedRoute } from '@weir/core/policy/match-route.ts'
import { requirePolicy } from '@weir/core/policy/require-policy.ts'
import { createMemoryLimitStore } from '@weir/redis/memory-limit-store.ts'
import { beforeEach, expect, test } from 'vitest'
import { type Ask, createGate, type Gate } from './gate.ts'
import { createMemoryDecisionLog, type MemoryDecisionLog } from './memory-decision-log.ts'
import { createLivePolicy } from './policy-view.ts'

const policy = requirePolicy(
  `
version: 1
plans: { free: { limits: [trial, minute] }, watched: { limits: [trial] } }
limits:
  trial: { algorithm: sliding_log, size: 1, window: 1m, mode: shadow }
  minute: { algorithm: fixed_window, size: 3, window: 1m, block: 10m }
  tenant: { algorithm: token_bucket, size: 2, window: 1m, by: [subject, header:x-tenant] }
routes: [{ match: GET /t, limits: [tenant] }]
subjects: { acme: { plan: free, limits: { minute: { size: 4 } } }, globex: { plan: free }, initech: { plan: watched } }
`,
  'weir.yaml',
)

const { view } = createLivePolicy(policy)

let gate: Gate
let log: MemoryDecisionLog
let nowMs: number
let isStale: boolean

beforeEach(() => {
  log = createMemoryDecisionLog()
  nowMs = Date.parse('2026-11-21T12:00:10.000Z')
  const clock = { nowMs: () => nowMs }
  isStale = false
  gate = createGate({
    policy: createLivePolicy(policy, () => isStale),
    clock,
    store: createMemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() }),
    log,
  })
})

function ask(given: Partial<Ask> & { readonly id?: string } = {}): Ask {
  const { id = 'globex', ...rest } = given
  const subject = policy.subjects.get(id)
  if (subject === undefined) throw new Error(`no subject ${id}`)
  const plain = { keyId: 'k', ip: '', route: unmatchedRoute, method: 'GET', cost: 1, peek: false }
  return { view, subject, ...plain, named: undefined, idempotencyKey: undefined, ...rest }
}

test('what a shadow limit would have refused is allowed, and recorded under its name', async () => {
  await gate.decide(ask())
  const second = await gate.decide(ask())
  expect(second.decision).toMatchObject({ allowed: true, reason: 'ok', shadowedBy: 'trial' })
  expect(log.records).toMatchObject([
    { outcome: 'allow', reason: 'ok', mode: 'enforce', denied_by: '', charged: 'yes' },
    { outcome: 'allow', reason: 'limit', mode: 'shadow', denied_by: 'trial', charged: 'yes' },
  ])
  expect(log.records[1]?.limits).toMatchObject([{ name: 'trial', used: 1 }, { name: 'minute' }])
})

test('a refusal is recorded as one, whatever a shadow limit thinks of it too', async () => {
  for (let n = 0; n < 4; n += 1) await gate.decide(ask())
  expect(log.records.at(-1)).toMatchObject({ outcome: 'deny', reason: 'limit', mode: 'enforce', denied_by: 'minute' })
})

test('whoever exceeds a limit with a block stays out for its time, also in the next window', async () => {
  for (let n = 0; n < 4; n += 1) await gate.decide(ask())
  nowMs += 60_000
  const blocked = await gate.decide(ask())
  expect(blocked.decision).toMatchObject({ allowed: false, reason: 'blocked', deniedBy: 'minute' })
  expect(blocked.decision.retryAfterMs).toBe(540_000)
  nowMs += 540_000
  expect((await gate.decide(ask())).decision.allowed).toBe(true)
})

test("a subject's own version of a limit decides for it, and counts under the limit's name", async () => {
  const outcomes = []
  for (let n = 0; n < 5; n += 1) outcomes.push((await gate.decide(ask({ id: 'acme' }))).decision.allowed)
  expect(outcomes).toEqual([true, true, true, true, false])
  expect((await gate.decide(ask({ peek: true }))).decision.limits[1]).toMatchObject({
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
    return (await gate.decide(ask({ id: 'initech', route, named }))).decision.deniedBy
  }
  expect([await from('a'), await from('a'), await from('b'), await from('a')]).toEqual(['', '', '', 'tenant'])
  expect((await gate.decide(ask({ id: 'initech' }))).limits?.map(({ name }) => name)).toEqual(['trial'])
})

test('an idempotency key is charged and recorded once, and answered with the first id', async () => {
  const first = await gate.decide(ask({ idempotencyKey: 'order-1' }))
  const again = await gate.decide(ask({ idempotencyKey: 'order-1' }))
  const other = await gate.decide(ask({ idempotencyKey: 'order-2' }))
  expect(again.id).toBe(first.id)
  expect(again.decision.allowed).toBe(true)
  expect(other.id).not.toBe(first.id)
  expect(log.records.map(({ id }) => id)).toEqual([first.id, other.id])
  expect(other.decision.limits.find(({ name }) => name === 'minute')).toMatchObject({ used: 2 })
})

test('a repeat of what could not be recorded is recorded before it is admitted, and then once', async () => {
  const request = ask({ idempotencyKey: 'order-1' })
  log.isFull = true
  const refused = [await gate.decide(request), await gate.decide(request)]
  expect(refused.map(({ decision }) => decision.reason)).toEqual(['journal_full', 'journal_full'])
  log.isFull = false
  const admitted = [await gate.decide(request), await gate.decide(request)]
  expect(admitted.map(({ decision }) => decision.allowed)).toEqual([true, true])
  expect(log.records).toMatchObject([{ id: refused[0]?.id, outcome: 'allow', charged: 'yes' }])
})

test('while the policy is stale everybody is refused, charged nothing and recorded, and strangers are not told that they are', async () => {
  isStale = true
  const [known, stranger] = [
    await gate.decide(ask()),
    await gate.refuseStranger({ ip: '192.0.2.1', route: unmatchedRoute, method: 'GET', retryAfterMs: 0 }),
  ]
  for (const { decision } of [known, stranger]) {
    expect(decision).toMatchObject({ allowed: false, reason: 'unavailable', charged: 'no', retryAfterMs: 5_000 })
  }
  expect(log.records).toMatchObject([
    { subject: 'globex', outcome: 'deny', reason: 'unavailable' },
    { subject: '_unauthenticated', outcome: 'deny', reason: 'unavailable' },
  ])
  isStale = false
  const [first] = (await gate.decide(ask())).decision.limits
  expect(first).toMatchObject({ name: 'trial', used: 1 })
})
