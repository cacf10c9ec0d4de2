import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { LimitRequest } from '@weir/core/limits/limit-store.ts'
import { rateLimitState } from '@weir/core/limits/rate-limit-headers.ts'
import { DecisionService } from '@weir/decide/decision-service.ts'
import { buildDecisionRequest } from '@weir/decide/testing/build-decision-request.ts'
import type { DecisionRequest, RecordedDecision } from '@weir/decide/types.ts'
import { createManualTime } from '@weir/decide/wait/testing/manual-time.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { afterEach, expect, test, vi } from 'vitest'
import { memoryPorts } from './testing/memory-ingress.ts'

afterEach(() => void vi.useRealTimers())

const policyText = `
version: 1
plans: { shared: { limits: [shared] }, own: { limits: [own] }, plain: { limits: [plain] }, both: { limits: [own, strict] }, long: { limits: [shared, long] } }
limits:
  shared: { algorithm: token_bucket, size: 10, window: 1s, burst: 1, by: [global], onExceed: { delay: 5s, queue: 100 } }
  own: { algorithm: sliding_log, size: 1, window: 100ms, onExceed: { delay: 1s, queue: 2 } }
  strict: { algorithm: sliding_log, size: 2, window: 700ms, onExceed: { delay: 60s } }
  plain: { algorithm: sliding_log, size: 1, window: 1s }
  long: { algorithm: sliding_log, size: 1, window: 4s }
subjects: { a: { plan: shared }, b: { plan: shared }, c: { plan: shared }, own: { plan: own }, plain: { plan: plain }, both: { plan: both }, long: { plan: long } }
`
const startMs = Date.parse('2026-11-22T12:00:10.000Z')

const newClient = () => new ServerResponse(new IncomingMessage(new Socket()))

const longDenial = {
  allowed: false,
  reason: 'limit',
  deniedBy: 'shared',
  retryAfterMs: 4_000,
  exceededMask: 1,
} as const

function openGate(text = policyText) {
  const time = createManualTime(vi)
  const clock = { nowMs: () => startMs + time.nowMs() }
  const { store: memory, ...ports } = memoryPorts(text, clock)
  const { policy: live, log } = ports
  const asked: LimitRequest[] = []
  /** Whose next request another process comes before: it takes all room. */
  const quicker = { subject: '' }
  /** A client that leaves while its next request is denied for long. */
  const leaver: { subject: string; client: ServerResponse | undefined } = { subject: '', client: undefined }
  const store = {
    decide: async (request: LimitRequest) => {
      asked.push(request)
      if (request.scope.subject === quicker.subject) {
        quicker.subject = ''
        await memory.decide(request)
      }
      const decision = await memory.decide(request)
      if (leaver.client === undefined || request.scope.subject !== leaver.subject) return decision
      leaver.client.destroy()
      leaver.client = undefined
      return { ...decision, ...longDenial }
    },
    refund: memory.refund.bind(memory),
  }
  const decisionService = new DecisionService({ ...ports, store })
  const { delays } = decisionService
  const answered: { readonly subject: string; readonly atMs: number; readonly verdict: RecordedDecision }[] = []
  const ask = async (id: string, given: Partial<DecisionRequest> = {}) => {
    const asked = buildDecisionRequest(live.view, id, { client: newClient(), ...given })
    const verdict = await decisionService.decide(asked)
    answered.push({ subject: id, atMs: time.nowMs(), verdict })
    return verdict
  }
  /** Pauses a limit for a subject. */
  const pause = async (name: string, subject: string, pauseMs: number) => {
    const limit = live.view.policy.limits.get(name)
    if (limit === undefined) throw new Error(`no limit ${name}`)
    await memory.pause(limit, { subject, keyId: '', ip: '', route: '', method: '' }, pauseMs)
  }
  const outcomes = () =>
    answered.map(({ subject, atMs, verdict }) => `${subject} ${verdict.decision.allowed ? 'ok' : 'no'} ${atMs}`)
  return { time, log, live, pause, asked, quicker, leaver, delays, decisionService, ask, outcomes, answered }
}

test('50 clients of three subjects are served evenly, in the order in which they came, and each is recorded once, by its outcome', async () => {
  const { time, log, ask, outcomes, delays, decisionService } = openGate()
  const ids = Array.from({ length: 50 }, (_, n) => [...'aaabbc'][n % 6] ?? '')
  for (const id of ids) void ask(id)
  await time.pass(0)
  expect([delays.waiting, log.records.length]).toEqual([49, 1])
  await time.pass(2_000)
  expect(outcomes()).toEqual(ids.slice(0, 21).map((id, at) => `${id} ok ${at * 100}`))
  await time.pass(3_000)
  expect(log.records).toHaveLength(50)
  expect(log.records.every(({ outcome, reason }) => outcome === 'allow' && reason === 'ok')).toBe(true)
  expect([delays.waiting, delays.busyKeys, decisionService.exceeded.delay]).toEqual([0, 0, 49])
  // Deciding takes no time on this clock, and waiting is left out.
  const { duration } = decisionService.metrics.entryPoints.check
  expect([duration.count, duration.sum]).toEqual([50, 0])
})

test('A client that leaves while its request is denied holds back none of those behind it', async () => {
  const { time, ask, leaver, outcomes } = openGate()
  const client = newClient()
  void ask('a')
  await time.pass(0)
  void ask('b', { client })
  void ask('c')
  await time.pass(50)
  Object.assign(leaver, { subject: 'b', client })
  await time.pass(1_000)
  expect(outcomes().filter((outcome) => !outcome.startsWith('b'))).toEqual(['a ok 0', 'c ok 200'])
})

test('A request that could not be served in time, or finds the queue full, is denied immediately', async () => {
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

test('A request that comes while others wait is not even decided, but waits behind them', async () => {
  const { time, ask, asked, outcomes } = openGate()
  for (const id of ['a', 'a', 'a']) void ask(id)
  await time.pass(150)
  expect(asked).toHaveLength(4)
  void ask('a')
  void ask('b')
  await time.pass(0)
  expect(asked).toHaveLength(4)
  await time.pass(1_000)
  expect(outcomes()).toEqual(['a ok 0', 'a ok 100', 'a ok 200', 'a ok 300', 'b ok 400'])
})

test('A request without a client does not wait, and a peek never does', async () => {
  const { time, ask, delays } = openGate()
  await ask('a')
  expect((await ask('a', { client: undefined })).decision.reason).toBe('limit')
  expect((await ask('a', { peek: true })).decision.reason).toBe('limit')
  expect((await ask('plain')).decision.allowed).toBe(true)
  expect((await ask('plain')).decision.allowed).toBe(false)
  expect([delays.waiting, time.timers]).toEqual([0, 0])
})

test('A client that leaves frees its slot immediately, and is recorded as the refusal that it would have got', async () => {
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

test('A request whose client has left by the time of its grant, or with its connection alone, is not decided', async () => {
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

test('A check waits for capacity in any limit as long as it says, and the refusal after that says when there will be some', async () => {
  const { time, ask, outcomes, answered } = openGate()
  for (const waitMs of [0, 1_500, 1_500, 500]) void ask('plain', { waitMs })
  await time.pass(0)
  expect(outcomes()).toEqual(['plain ok 0', 'plain no 0', 'plain no 0'])
  await time.pass(1_000)
  expect(outcomes().at(-1)).toBe('plain ok 1000')
  expect(answered[1]?.verdict.decision).toMatchObject({ reason: 'limit', retryAfterMs: 1_000 })
})

test('A refusal because others wait names the limit that they wait for, and no other', async () => {
  const { time, ask, asked, log } = openGate()
  for (const id of ['a', 'a', 'a']) void ask(id)
  await time.pass(0)
  const { decision, limits = [] } = await ask('long', { waitMs: 150 })
  expect(asked).toHaveLength(3)
  expect(decision.limits).toEqual([{ name: 'shared', size: 1, used: 1, remaining: 0, resetMs: 300 }])
  expect([rateLimitState(decision, limits), decision.retryAfterMs]).toEqual(['"shared";r=0;t=1', 300])
  expect(log.records.at(-1)).toMatchObject({ denied_by: 'shared', limits: [{ name: 'shared', remaining: 0 }] })
})

test('A request that is pushed back beyond its deadline learns when capacity is expected by then, and is recorded once', async () => {
  const { time, ask, answered, log, quicker } = openGate()
  void ask('a')
  void ask('a', { waitMs: 1_000 })
  void ask('a', { waitMs: 250 })
  for (const id of ['b', 'c', 'b', 'c']) void ask(id, { waitMs: 1_000 })
  await time.pass(50)
  quicker.subject = 'a'
  await time.pass(200)
  expect(answered.at(-1)).toMatchObject({ subject: 'a', atMs: 250, verdict: { decision: { allowed: false } } })
  expect(answered.at(-1)?.verdict.decision.retryAfterMs).toBe(450)
  await time.pass(2_000)
  expect(log.records).toHaveLength(7)
  expect(log.records.filter(({ outcome }) => outcome === 'deny')).toHaveLength(1)
})

test('A request that another limit refuses at its grant waits for that one, within the same time', async () => {
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

test('A paused limit denies immediately what cannot wait for its end, and its queue goes on when it ends', async () => {
  const { time, ask, pause, outcomes, answered } = openGate()
  await pause('own', 'own', 30_000)
  expect((await ask('own')).decision).toMatchObject({ reason: 'blocked', deniedBy: 'own', retryAfterMs: 30_000 })
  await time.pass(29_500)
  void ask('own')
  await time.pass(1_000)
  expect(outcomes().at(-1)).toBe('own ok 30000')
  expect(answered).toHaveLength(2)
})

test('Under an idempotency key the first admission after waiting is charged and recorded once, and answered again', async () => {
  const { time, ask, log, answered } = openGate()
  void ask('plain', { waitMs: 5_000 })
  void ask('plain', { waitMs: 5_000, idempotencyKey: 'order' })
  await time.pass(1_000)
  const again = await ask('plain', { waitMs: 5_000, idempotencyKey: 'order' })
  expect(again.id).toBe(answered[1]?.verdict.id)
  expect(log.records).toHaveLength(2)
})

test('A request that is refused for good, or cannot be decided, does not wait', async () => {
  const { ask, delays } = openGate()
  void ask('plain', { waitMs: 5_000 })
  expect((await ask('plain', { cost: 2, waitMs: 5_000 })).decision.reason).toBe('cost_exceeds_limit')
  expect(delays.waiting).toBe(0)
})

test('A request over a limit of its own that is not waited for does not wait, and keeps no other waiting', async () => {
  const { time, ask, outcomes, delays } = openGate()
  for (const id of ['long', 'long']) void ask(id)
  await time.pass(0)
  expect(delays.waiting).toBe(0)
  for (const id of ['a', 'b']) void ask(id)
  await time.pass(1_000)
  expect(outcomes()).toEqual(['long ok 0', 'long no 0', 'a ok 100', 'b ok 200'])
})

test('A request that also waits for a longer limit of its own keeps no other waiting', async () => {
  const { time, ask, asked, outcomes } = openGate()
  for (const id of ['long', 'long', 'a', 'b']) void ask(id, { waitMs: 10_000 })
  await time.pass(3_999)
  // The smallest timer is one of 1 ms, so that b is tried 1 ms too early once.
  expect(outcomes()).toEqual(['long ok 0', 'a ok 101', 'b ok 201'])
  expect(asked).toHaveLength(8)
  await time.pass(1)
  expect(outcomes().at(-1)).toBe('long ok 4000')
})

test('A longer limit that shows at a grant ends the wait of its own subject alone, and newcomers learn of a short one', async () => {
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

const changing = (subjects: string, plans = '{ free: { limits: [few] } }') => `
version: 1
plans: ${plans}
limits:
  few: { algorithm: sliding_log, size: 1, window: 1s, onExceed: { delay: 5s } }
  roomy: { algorithm: sliding_log, size: 100, window: 1s }
subjects: ${subjects}
`

/** One request of acme has its capacity, and another waits for it. */
async function openWaiting(first = changing('{ acme: { plan: free } }')) {
  const { ask, live, ...gate } = openGate(first)
  const reauthenticate: DecisionRequest['reauthenticate'] = async ({ policy }) => {
    const found = policy.subjects.get('acme')
    return found === undefined ? undefined : { subject: found, keyId: '' }
  }
  await ask('acme', { reauthenticate })
  const waiting = ask('acme', { reauthenticate })
  await gate.time.pass(0)
  expect(gate.delays.waiting).toBe(1)
  const replace = (...next: Parameters<typeof changing>) => live.replace(requirePolicy(changing(...next), 'weir.yaml'))
  return { ...gate, replace, waiting }
}

test('A subject that is in the policy no more at its grant is denied', async () => {
  const { time, replace, waiting, log } = await openWaiting()
  replace('{ other: { plan: free } }')
  await time.pass(2_000)
  expect((await waiting).decision).toMatchObject({ allowed: false, reason: 'unauthorized' })
  expect(log.records).toMatchObject([{ outcome: 'allow' }, { outcome: 'deny', reason: 'unauthorized', charged: 'no' }])
})

test('A subject that is suspended while it waits is refused at its grant', async () => {
  const { time, replace, waiting, log } = await openWaiting()
  replace('{ acme: { plan: free, suspended: unpaid } }')
  await time.pass(2_000)
  expect((await waiting).decision).toMatchObject({ allowed: false, byHand: { kind: 'suspended', reason: 'unpaid' } })
  expect(log.records.at(-1)).toMatchObject({ outcome: 'deny', reason: 'blocked', charged: 'no' })
})

test('A grant is decided by the limits that are in force by then', async () => {
  const { time, replace, waiting, log } = await openWaiting()
  replace('{ acme: { plan: wide } }', '{ wide: { limits: [] } }')
  await time.pass(2_000)
  expect(await waiting).toMatchObject({ decision: { allowed: true }, limits: [] })
  expect(log.records.at(-1)).toMatchObject({ outcome: 'allow', plan: 'wide', limits: [] })
})

test('A request that a changed policy refuses at its grant keeps its slot, whatever the order of the limits is now', async () => {
  const subjects = '{ acme: { plan: free } }'
  const before = changing(subjects, '{ free: { limits: [few, roomy] } }')
  const { time, replace, waiting, delays, pause } = await openWaiting(before)
  replace(subjects, '{ free: { limits: [roomy, few] } }')
  await pause('few', 'acme', 3_000)
  await time.pass(2_999)
  expect(delays.waiting).toBe(1)
  await time.pass(1)
  expect((await waiting).decision.allowed).toBe(true)
})
