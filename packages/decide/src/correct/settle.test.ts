import type { Settled, Settlement } from '@weir/core/limits/settlement.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Settlements } from '../ports.ts'
import { createMemoryDecisionLog } from '../testing/memory-decision-log.ts'
import { CorrectionAckQueue } from './correction-ack-queue.ts'
import { Corrections } from './corrections.ts'
import { Settling } from './settle.ts'

const context = JSON.stringify({ tsMs: 0, keyId: 'k', plan: 'free', route: 'GET /x', method: 'GET' })
const wish = (id: string): Settlement => ({ subject: 'acme', id, cost: 3 })

/** A Redis that settles whatever it is asked, and confirms records only while `isHearing`. */
function fakeRedis() {
  const safe = new Set<string>()
  const redis = {
    isHearing: false,
    /** Calls that confirm a record, answered or not. */
    asked: 0,
    /** What an answer waits for on its way. */
    onTheWay: Promise.resolve(),
    isRecordPending: (id: string) => !safe.has(id),
    async settle({ id, cost = 5 }: Settlement): Promise<Settled> {
      const isRecordPending = redis.isRecordPending(id)
      await redis.onTheWay
      return { kind: 'settled', cost, chargedCost: 5, context, limits: [], settledAtUs: 0, isRecordPending }
    },
    renew: async () => ({ kind: 'unknown' }) as const,
    async confirmRecorded({ id }: Pick<Settlement, 'id'>): Promise<boolean> {
      redis.asked += 1
      if (redis.isHearing) safe.add(id)
      return redis.isHearing
    },
  } satisfies Settlements & Record<string, unknown>
  return redis
}

function open(warn: (fields: object) => unknown = () => undefined) {
  const redis = fakeRedis()
  const log = createMemoryDecisionLog()
  const pauses: (() => void)[] = []
  const pause = () => new Promise<void>((resolve) => pauses.push(resolve))
  const ackQueue = new CorrectionAckQueue(redis, { warn }, pause)
  const store = { refund: async () => false }
  const settling = new Settling({ settlements: redis, store, log, corrections: new Corrections(log), ackQueue })
  return { redis, log, pauses, ackQueue, settling }
}

test('a written record that Redis did not confirm is acknowledged until Redis has it, although no client repeats', async () => {
  const { redis, log, pauses, settling } = open()
  expect(await settling.settle(wish('a'))).toMatchObject({ kind: 'settled', adjustment: -2 })
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await vi.waitUntil(() => pauses.length === attempt)
    expect(redis.isRecordPending('a')).toBe(true)
    if (attempt === 3) redis.isHearing = true
    pauses.at(-1)?.()
  }
  await vi.waitUntil(() => !redis.isRecordPending('a'))
  expect(await settling.settle(wish('a'))).toMatchObject({ kind: 'settled', adjustment: -2 })
  expect([log.records.length, pauses.length]).toEqual([1, 3])
})

test('equal settlements at the same time have one record and one answer', async () => {
  const { redis, log, settling } = open()
  redis.isHearing = true
  const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => settling.settle(wish('a'))))
  expect([first, log.records.length]).toMatchObject([{ kind: 'settled' }, 1])
  expect(others).toEqual(Array(5).fill(first))
})

test('a subject and a token that settle one decision to one cost concurrently are answered each by what it may', async () => {
  const { redis, settling } = open()
  const { settle } = redis
  Object.assign(redis, {
    settle: async (asked: Settlement) => (asked.isOwn === true ? { kind: 'forbidden' } : await settle(asked)),
  })
  const both = [settling.settle({ ...wish('a'), isOwn: true }), settling.settle({ ...wish('a'), isOwn: false })]
  expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['forbidden', 'settled'])
})

test('a repeat that finds the record pending just before Redis confirms it writes no second one', async () => {
  const { redis, log, pauses, settling } = open()
  await settling.settle(wish('a'))
  await vi.waitUntil(() => pauses.length === 1)
  const { promise, resolve } = Promise.withResolvers<void>()
  redis.onTheWay = promise
  const repeat = settling.settle(wish('a'))
  redis.isHearing = true
  pauses[0]?.()
  await vi.waitUntil(() => !redis.isRecordPending('a'))
  await new Promise(setImmediate) // callbacks have run by then
  resolve()
  expect(await repeat).toMatchObject({ kind: 'settled' })
  expect(log.records).toHaveLength(1)
})

test('a process that was stopped for 20 s between asking Redis and writing asks again before it writes', async () => {
  const { redis, log, settling } = open()
  let nowMs = 0
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => monotonic.mockRestore())
  const { promise, resolve } = Promise.withResolvers<void>()
  redis.onTheWay = promise
  const first = settling.settle(wish('a'))
  nowMs = 20_001
  resolve()
  expect([await first, log.records.length]).toEqual([{ kind: 'unavailable' }, 0])
  expect(await settling.settle(wish('a'))).toMatchObject({ kind: 'settled' })
  expect(log.records).toHaveLength(1)
})

test('a process has 10,000 records at most that Redis does not know of, and takes more once it knows; few are asked at a time', async () => {
  const { redis, log, pauses, settling } = open()
  for (let n = 0; n < 10_000; n += 1) await settling.settle(wish(`a${n}`))
  await vi.waitUntil(() => pauses.length === 1)
  expect(redis.asked).toBeLessThanOrEqual(10_000 + 32)
  expect(await settling.settle(wish('more'))).toEqual({ kind: 'unrecorded' })
  redis.isHearing = true
  pauses[0]?.()
  await vi.waitUntil(() => !redis.isRecordPending('a0') && !redis.isRecordPending('a9999'))
  expect(await settling.settle(wish('more'))).toMatchObject({ kind: 'settled' })
  expect([log.records.length, pauses.length]).toEqual([10_001, 1])
})

test('after its close the queue sends nothing more, and it returns how many Redis does not know of', async () => {
  const { redis, pauses, ackQueue, settling } = open()
  await settling.settle(wish('a'))
  await settling.settle(wish('b'))
  await vi.waitUntil(() => pauses.length === 1)
  expect(ackQueue.close()).toBe(2)
  const { asked } = redis
  pauses[0]?.()
  ackQueue.enqueue([wish('c')])
  await new Promise(setImmediate)
  expect(redis.asked).toBe(asked)
})

test('the log says once that Redis has not answered for half of the minute after which others write', async () => {
  let nowMs = 0
  const late: object[] = []
  const { redis, pauses, settling } = open((fields) => late.push(fields))
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => monotonic.mockRestore())
  await settling.settle(wish('a'))
  for (const [at, seconds] of [29, 31, 90].entries()) {
    await vi.waitUntil(() => pauses.length === at + 1)
    expect(late).toHaveLength(seconds > 31 ? 1 : 0)
    nowMs = seconds * 1_000
    if (seconds === 90) redis.isHearing = true
    pauses[at]?.()
  }
  await vi.waitUntil(() => !redis.isRecordPending('a'))
  expect(late).toEqual([{ left: 1 }])
})

test('corrections found in journals while Redis was down are acknowledged once each when it is back', async () => {
  const { redis, pauses, ackQueue } = open()
  let acked = 0
  ackQueue.enqueue([wish('a'), wish('b'), wish('a')], () => {
    acked += 1
  })
  await vi.waitUntil(() => pauses.length === 1)
  redis.isHearing = true
  pauses[0]?.()
  await vi.waitUntil(() => acked === 2)
  expect([redis.asked, redis.isRecordPending('a'), redis.isRecordPending('b'), ackQueue.close()]).toEqual([
    4,
    false,
    false,
    0,
  ])
})
