import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { MemoryLimitStore } from '@weir/redis/testing/memory-limit-store.ts'
import { afterEach, expect, test, vi } from 'vitest'
import { createLivePolicy } from '../../policy-view.ts'
import { createMemoryDecisionLog } from '../../testing/memory-decision-log.ts'
import { MemoryIdempotencyRecords } from '../../testing/memory-idempotency-records.ts'
import { DecisionService } from '../decision-service.ts'
import type { DecisionRequest } from '../types.ts'
import { createManualTime } from './testing/manual-time.ts'

afterEach(() => void vi.useRealTimers())

const policyOf = (subjects: string, plans = '{ free: { limits: [few] } }') =>
  requirePolicy(
    `
version: 1
plans: ${plans}
limits:
  few: { algorithm: sliding_log, size: 1, window: 1s, onExceed: { delay: 5s } }
  roomy: { algorithm: sliding_log, size: 100, window: 1s }
subjects: ${subjects}
`,
    'weir.yaml',
  )

/** One request of the subject has its room, and another waits for it. */
async function openWaiting(first = policyOf('{ acme: { plan: free } }')) {
  const time = createManualTime(vi)
  const clock = { nowMs: () => Date.parse('2026-11-22T12:00:10.000Z') + time.nowMs() }
  const log = createMemoryDecisionLog()
  const live = createLivePolicy(first)
  const store = new MemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() })
  const decisionService = new DecisionService({
    policy: live,
    store,
    log,
    clock,
    idempotencyRecords: new MemoryIdempotencyRecords(),
  })
  const { view } = live
  const subject = view.policy.subjects.get('acme')
  if (subject === undefined) throw new Error('no subject acme')
  const reauthenticate: DecisionRequest['reauthenticate'] = async (now) => {
    const found = now.policy.subjects.get('acme')
    return found === undefined ? undefined : { subject: found, keyId: '' }
  }
  const asked = {
    entryPoint: 'check' as const,
    startedAt: 0,
    view,
    subject,
    keyId: '',
    ip: '',
    route: unmatchedRoute,
    method: 'GET',
    cost: 1,
    peek: false,
    reauthenticate,
  }
  const client = new ServerResponse(new IncomingMessage(new Socket()))
  const ask = () => decisionService.decide({ ...asked, named: undefined, idempotencyKey: undefined, client })
  await ask()
  const waiting = ask()
  await time.pass(0)
  return { time, live, waiting, records: log.records, decisionService, store }
}

test('A subject that is in the policy no more at its grant is denied', async () => {
  const { time, live, waiting, records, decisionService } = await openWaiting()
  expect(decisionService.delays.waiting).toBe(1)
  live.replace(policyOf('{ other: { plan: free } }'))
  await time.pass(2_000)
  expect((await waiting).decision).toMatchObject({ allowed: false, reason: 'unauthorized' })
  expect(records).toMatchObject([{ outcome: 'allow' }, { outcome: 'deny', reason: 'unauthorized', charged: 'no' }])
})

test('A grant is decided by the limits that are in force by then', async () => {
  const { time, live, waiting, records } = await openWaiting()
  live.replace(policyOf('{ acme: { plan: wide } }', '{ wide: { limits: [] } }'))
  await time.pass(2_000)
  expect(await waiting).toMatchObject({ decision: { allowed: true }, limits: [] })
  expect(records.at(-1)).toMatchObject({ outcome: 'allow', plan: 'wide', limits: [] })
})

test('A request that a changed policy refuses at its grant keeps its place, whatever the order of the limits is now', async () => {
  const subjects = '{ acme: { plan: free } }'
  const { time, live, waiting, decisionService, store } = await openWaiting(
    policyOf(subjects, '{ free: { limits: [few, roomy] } }'),
  )
  live.replace(policyOf(subjects, '{ free: { limits: [roomy, few] } }'))
  const few = live.view.policy.limits.get('few')
  if (few === undefined) throw new Error('no limit few')
  await store.pause(few, { subject: 'acme', keyId: '', ip: '', route: '', method: '' }, 3_000)
  await time.pass(2_999)
  expect(decisionService.delays.waiting).toBe(1)
  await time.pass(1)
  expect((await waiting).decision.allowed).toBe(true)
})
