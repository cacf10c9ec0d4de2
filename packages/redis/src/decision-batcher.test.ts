import { buildLimit, buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { expect, test, vi } from 'vitest'
import { DecisionBatcher } from './decision-batcher.ts'
import { blockKey, limitKey, markerKey, settlementKey, tallyKey } from './keys.ts'
import { StoreCounts } from './limit-store-counters.ts'

test.each(['deny', 'allow'] as const)(
  '%s: a hold that may have been charged for nobody is given back until Redis answers, with growing pauses',
  async (onUnavailable) => {
    vi.useFakeTimers()
    let sent = 0
    let reply = async (): Promise<unknown> => {
      throw new Error('OOM command not allowed when used memory > maxmemory')
    }
    const target = {
      isDown: false,
      send: () => {
        sent += 1
        return sent === 1 ? Promise.reject(new Error('Connection is closed.')) : reply()
      },
      onTimeout: () => undefined,
      onLateReply: () => undefined,
      onceAvailable: (run: () => void) => run(),
    }
    const parts = () => ({
      keyOf: limitKey,
      blockKeyOf: blockKey,
      markerKeyOf: markerKey,
      settlementKeyOf: () => settlementKey({ subject: 'acme' }, 'id'),
      tallyKeyOf: tallyKey,
      markersMax: 10,
      boundariesOf: () => undefined,
      nowMs: undefined,
    })
    const batcher = new DecisionBatcher(target, { deadlineMs: 25, counts: new StoreCounts(), parts })
    const limits = [buildLimit({ unit: 'tokens', onUnavailable })]
    const reservation = { id: 'id', ttlMs: 60_000, context: '{}' }
    const units = new Map([['tokens', 4]])
    const decided = batcher.decide(buildLimitRequest({ limits, units, reservation }), performance.now())
    await vi.advanceTimersByTimeAsync(0)
    const { allowed, lateRefund: ofDenial, giveBack } = await decided
    expect([allowed, sent]).toEqual([onUnavailable === 'allow', 1])
    await vi.advanceTimersByTimeAsync(onUnavailable === 'allow' ? 10_000 : 0)
    // Of an admission nothing is given back before a layer denies it.
    expect(sent).toBe(1)
    const lateRefund = ofDenial ?? giveBack?.()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(sent).toBeGreaterThan(4)
    expect(sent).toBeLessThan(12)
    const numbers = new DataView(new ArrayBuffer(24))
    for (const [at, number] of [7_000_000, 0, 1].entries()) numbers.setFloat64(8 * at, number)
    reply = async () => Buffer.from(numbers.buffer)
    await vi.advanceTimersByTimeAsync(6_000)
    await lateRefund
    const after = sent
    await vi.advanceTimersByTimeAsync(60_000)
    expect(sent).toBe(after)
    vi.useRealTimers()
  },
)
