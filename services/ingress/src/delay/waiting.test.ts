import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { createBoundaryCache } from '@weir/core/calendar/boundary-cache.ts'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { rateLimitState } from '@weir/core/limits/rate-limit-headers.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { createMemoryLimitStore } from '@weir/redis/memory-limit-store.ts'
import { expect, test } from 'vitest'
import { type Ask, createGate, type Verdict } from '../gate.ts'
import { createLivePolicy } from '../policy-view.ts'
import { createMemoryDecisionLog } from '../testing/memory-decision-log.ts'
import { DelayQueues } from './delay-queues.ts'
import { createManualTime } from './testing/manual-time.ts'

const policy = requirePolicy(
  `
version: 1
plans: { shared: { limits: [shared] }, own: { limits: [own] }, plain: { limits: [plain] }, both: { limits: [own, strict] }, long: { limits: [shared, long] } }
limits:
  shared: { algorithm: token_bucket, size: 10, window: 1s, burst: 1, by: [global], onExceed: { delay: 5s, queue: 100 } }
  own: { algorithm: sliding_log, size: 1, window: 100ms, onExceed: { delay: 1s, queue: 2 } }
  strict: { algorithm: sliding_log, size: 2, window: 700ms, onExceed: { delay: 60s } }
  plain: { algorithm: sliding_log, size: 1, window: 1s }
  long: { algorithm: sliding_log, size: 1, window: 4s }
subjects: { a: { plan: shared }, b: { plan: shared }, c: { plan: shared }, own: { plan: own }, plain: { plan: plain }, both: { plan: both }, long: { plan: long } }
`,
  'weir.yaml',
)
const { view } = createLivePolicy(policy)
const startMs = Date.parse('2026-11-22T12:00:10.000Z')

const newClient = () => new ServerResponse(new IncomingMessage(new Socket()))

function openGate() {
  const time = createManualTime()
  const clock = { nowMs: () => startMs + time.nowMs() }
  const log = createMemoryDecisionLog()
  const memory = createMemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() })
  const asked: LimitRequest[] = []
  /** Whose next request another process comes before: it takes all room. */
  const quicker = { subject: '' }
  const store = {
    decide: async (request: LimitRequest) => {
      asked.push(request)
      if (request.scope.subject === quicker.subject) {
        quicker.subject = ''
        await memory.decide(request)
      }
      return memory.decide(request)
    },
    refund: memory.refund.bind(memory),
  }
  const delays = new DelayQueues(time)
  const gate = createGate({ policy: createLivePolicy(policy), store, log, clock, delays })
  const answered: { readonly subject: string; readonly atMs: number; readonly verdict: Verdict }[] = []
  const ask = (id: string, given: Partial<Ask> = {}) => {
    const subject = policy.subjects.get(id)
    if (subject === undefined) throw new Error(`no subject ${id}`)
    const plain = { keyId: '', ip: '', route: unmatchedRoute, method: 'GET', cost: 1, peek: false, named: undefined }
    const whole = { view, subject, ...plain, idempotencyKey: undefined, client: newClient(), ...given }
    return gate.decide(whole).then((verdict) => {
      answered.push({ subject: id, atMs: time.nowMs(), verdict })
      return verdict
    })
  }
  const outcomes = () =>
    answered.map(({ subject, atMs, verdict }) => `${subject} ${verdict.decision.allowed ? 'ok' : 'no'} ${atMs}`)
  return { time, log, memory, asked, quicker, delays, gate, ask, outcomes, answered }
}

test('50 clients of three subjects are served evenly, one of each in turn, and each is recorded once, as what it came to', async () => {
  const { time, log, ask, outcomes, delays, gate } = openGate()
  for (const [id, count] of Object.entries({ a: 35, b: 10, c: 5 })) for (let n = 0; n < count; n += 1) void ask(id)
  await time.pass(0)
  expect([delays.waiting, log.records.length]).toEqual([49, 1])
  await time.pass(2_000)
  const turns = [...'aabcabcabcabcabcababababab'.replace('a', ''), ...'aaaaaaaaaaaaaaaaaaaaaaaaa'].slice(0, 20)
  expect(outcomes().slice(1)).toEqual(turns.map((id, at) => `${id} ok ${(at + 1) * 100}`))
  await time.pass(3_000)
  expect(log.records).toHaveLength(50)
  expect(log.records.every(({ outcome, reason }) => outcome === 'allow' && reason === 'ok')).toBe(true)
  expect([delays.waiting, delays.busyKeys, gate.exceeded.delay]).toEqual([0, 0, 49])
})

test('whoever could not be served in time, or finds the queue full, is refused at once', async () => {
  const { time, ask, answered, log } = openGate()
  for (let n = 0; n < 60; n += 1) void ask('a')
  await time.pass(0)
  expect(answered).toHaveLength(10)
  expect(answered.at(-1)?.verdict.decision).toMatchObject({ reason: 'limit', deniedBy: 'shared', charged: 'no' })
  for (let n = 0; n < 4; n += 1) void ask('own')
  await time.pass(0)
  expect(answered).toHaveLength(12)
  await time.pass(5_000)
  expect(log.records.filter(({ outcome }) => outcome === 'allow')).toHaveLength(54)
  expect(log.records.reduce((sum, { count }) => sum + Number(count), 0)).toBe(64)
})

test('whoever comes while others wait does not even ask, but has its turn among them', async () => {
  const { time, ask, asked, outcomes } = openGate()
  for (const id of ['a', 'a', 'a']) void ask(id)
  await time.pass(150)
  expect(asked).toHaveLength(4)
  void ask('a')
  void ask('b')
  await time.pass(0)
  expect(asked).toHaveLength(4)
  await time.pass(1_000)
  expect(outcomes()).toEqual(['a ok 0', 'a ok 100', 'a ok 200', 'b ok 300', 'a ok 400'])
})

test('without a client nobody waits, and a look never does', async () => {
  const { time, ask, delays } = openGate()
  await ask('a')
  expect((await ask('a', { client: undefined })).decision.reason).toBe('limit')
  expect((await ask('a', { peek: true })).decision.reason).toBe('limit')
  expect((await ask('plain')).decision.allowed).toBe(true)
  expect((await ask('plain')).decision.allowed).toBe(false)
  expect([delays.waiting, time.timers]).toEqual([0, 0])
})

test('a client that leaves frees its place at once, and is recorded as the refusal it would have been', async () => {
  const { time, ask, log, outcomes, delays } = openGate()
  const client = newClient()
  void ask('a')
  void ask('a', { client })
  void ask('b')
  await time.pass(50)
  client.emit('close')
  await time.pass(0)
  expect([delays.waiting, log.records.length]).toEqual([1, 2])
  expect(log.records[1]).toMatchObject({ subject: 'a', outcome: 'deny', reason: 'limit', denied_by: 'shared' })
  expect(client.listenerCount('close') + client.listenerCount('timeout')).toBe(0)
  await time.pass(1_000)
  expect(outcomes()).toEqual(['a ok 0', 'a no 50', 'b ok 100'])
})

test('whoever has left by the time of its turn, or with its connection alone, is not asked for', async () => {
  const { time, ask, asked, outcomes, delays } = openGate()
  const [unnoticed, behind] = [newClient(), newClient()]
  void ask('a')
  void ask('a', { client: unnoticed })
  void ask('b', { client: behind })
  await time.pass(50)
  behind.req.socket.destroy()
  await time.pass(0)
  expect([delays.waiting, outcomes().at(-1)]).toEqual([1, 'b no 50'])
  Object.defineProperty(unnoticed, 'destroyed', { value: true })
  await time.pass(1_000)
  expect([delays.waiting, asked.length, outcomes().at(-1)]).toEqual([0, 3, 'a no 100'])
})

test('a check waits for room in any limit as long as it says, and the refusal after that says when there will be some', async () => {
  const { time, ask, outcomes, answered } = openGate()
  for (const waitMs of [0, 1_500, 1_500, 500]) void ask('plain', { waitMs })
  await time.pass(0)
  expect(outcomes()).toEqual(['plain ok 0', 'plain no 0', 'plain no 0'])
  await time.pass(1_000)
  expect(outcomes().at(-1)).toBe('plain ok 1000')
  expect(answered[1]?.verdict.decision).toMatchObject({ reason: 'limit', retryAfterMs: 1_000 })
})

test('whoever is refused because others wait is told of the limit that they wait for, and of no other', async () => {
  const { time, ask, asked, log } = openGate()
  for (const id of ['a', 'a', 'a']) void ask(id)
  await time.pass(0)
  const { decision, limits = [] } = await ask('long', { waitMs: 150 })
  expect(asked).toHaveLength(3)
  expect(decision.limits).toEqual([{ name: 'shared', size: 1, used: 1, remaining: 0, resetMs: 300 }])
  expect([rateLimitState(decision, limits), decision.retryAfterMs]).toEqual(['"shared";r=0;t=1', 300])
  expect(log.records.at(-1)).toMatchObject({ denied_by: 'shared', limits: [{ name: 'shared', remaining: 0 }] })
})

test('whoever is pushed back beyond its deadline is told when room is expected by then, and recorded once', async () => {
  const { time, ask, answered, log } = openGate()
  void ask('a')
  void ask('a', { waitMs: 1_000 })
  void ask('a', { waitMs: 250 })
  for (const id of ['b', 'c', 'b', 'c']) void ask(id, { waitMs: 1_000 })
  await time.pass(250)
  expect(answered.at(-1)).toMatchObject({ subject: 'a', atMs: 250, verdict: { decision: { allowed: false } } })
  expect(answered.at(-1)?.verdict.decision.retryAfterMs).toBe(350)
  await time.pass(2_000)
  expect(log.records).toHaveLength(7)
  expect(log.records.filter(({ outcome }) => outcome === 'deny')).toHaveLength(1)
})

test('whoever is refused by another limit when its turn comes waits for that one, within the same time', async () => {
  const { time, ask, outcomes, log } = openGate()
  for (let n = 0; n < 2; n += 1) void ask('both')
  await time.pass(100)
  expect(outcomes()).toEqual(['both ok 0', 'both ok 100'])
  void ask('both')
  await time.pass(599)
  expect(outcomes()).toHaveLength(2)
  await time.pass(1)
  expect(outcomes()).toEqual(['both ok 0', 'both ok 100', 'both ok 700'])
  expect(log.records).toHaveLength(3)
})

test('a paused limit refuses at once whoever cannot wait for its end, and its queue goes on when it ends', async () => {
  const { time, ask, memory, outcomes, answered } = openGate()
  const limit = policy.limits.get('own')
  if (limit === undefined) throw new Error('no limit')
  const scope = { subject: 'own', keyId: '', ip: '', route: '', method: '' }
  await memory.pause(limit, scope, 30_000)
  expect((await ask('own')).decision).toMatchObject({ reason: 'blocked', deniedBy: 'own', retryAfterMs: 30_000 })
  await time.pass(29_500)
  void ask('own')
  await time.pass(1_000)
  expect(outcomes().at(-1)).toBe('own ok 30000')
  expect(answered).toHaveLength(2)
})

test('at a stop nobody new waits, those who do have their turns for the grace, and then their refusal', async () => {
  const { time, ask, outcomes, gate, log } = openGate()
  for (let n = 0; n < 6; n += 1) void ask('a')
  await time.pass(0)
  const drained = gate.delays.drain(250)
  void ask('b')
  await time.pass(250)
  await drained
  expect(outcomes()).toEqual(['a ok 0', 'b no 0', 'a ok 100', 'a ok 200', 'a no 250', 'a no 250', 'a no 250'])
  expect(log.records.reduce((sum, { count }) => sum + Number(count), 0)).toBe(7)
})

test('under an idempotency key the first admission after waiting is charged and recorded once, and answered again', async () => {
  const { time, ask, log, answered } = openGate()
  void ask('plain', { waitMs: 5_000 })
  void ask('plain', { waitMs: 5_000, idempotencyKey: 'order' })
  await time.pass(1_000)
  const again = await ask('plain', { waitMs: 5_000, idempotencyKey: 'order' })
  expect(again.id).toBe(answered[1]?.verdict.id)
  expect(log.records).toHaveLength(2)
})

test('what is refused for good, or cannot be decided, is not waited for', async () => {
  const { ask, delays } = openGate()
  void ask('plain', { waitMs: 5_000 })
  expect((await ask('plain', { cost: 2, waitMs: 5_000 })).decision.reason).toBe('cost_exceeds_limit')
  expect(delays.waiting).toBe(0)
})

test('whoever is over a limit of its own that is not waited for does not wait, and keeps nobody else waiting', async () => {
  const { time, ask, outcomes, delays } = openGate()
  for (const id of ['long', 'long']) void ask(id)
  await time.pass(0)
  expect(delays.waiting).toBe(0)
  for (const id of ['a', 'b']) void ask(id)
  await time.pass(1_000)
  expect(outcomes()).toEqual(['long ok 0', 'long no 0', 'a ok 100', 'b ok 200'])
})

test('whoever waits for a longer limit of its own too rests meanwhile, and the others have their turns', async () => {
  const { time, ask, asked, outcomes } = openGate()
  for (const id of ['long', 'long', 'a', 'b']) void ask(id, { waitMs: 10_000 })
  await time.pass(3_999)
  expect(outcomes()).toEqual(['long ok 0', 'a ok 100', 'b ok 200'])
  expect(asked).toHaveLength(6)
  await time.pass(1)
  expect(outcomes().at(-1)).toBe('long ok 4000')
})

test('a longer limit that shows at a turn ends the wait of its own subject alone, and newcomers are told of a short one', async () => {
  const { time, ask, outcomes, quicker } = openGate()
  for (const id of ['a', 'a']) void ask(id)
  await time.pass(50)
  void ask('long', { waitMs: 2_000 })
  void ask('b')
  await time.pass(100)
  quicker.subject = 'long'
  await time.pass(50)
  expect(outcomes()).toEqual(['a ok 0', 'a ok 100', 'long no 200'])
  void ask('b', { waitMs: 200 })
  await time.pass(1_000)
  expect(outcomes().slice(3)).toEqual(['b ok 300', 'b ok 400'])
})
