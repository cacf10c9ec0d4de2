import { expect, test } from 'vitest'
import { type FixedWindowState, fixedWindow } from './fixed-window.ts'

const limit = { size: 10, capacity: 10, span: { kind: 'window', ms: 1_000 }, boundaries: undefined } as const

test('whatever the clock does, units are never negative and a refusal stores nothing', () => {
  let state: FixedWindowState | undefined
  for (let at = 0; at < 2_000; at += 1) {
    const nowMs = 1_000_000 + ((at * 7_919) % 9_000)
    const plan = fixedWindow.plan(state, limit, at % 13, nowMs * 1_000)
    expect(plan.used + plan.remaining).toBe(10)
    expect(plan.remaining).toBeGreaterThanOrEqual(0)
    expect(plan.resetMs).toBeGreaterThan(0)
    if (plan.waitMs !== 0) expect(plan.next).toBeUndefined()
    state = plan.next ?? state
  }
})

test('waiting exactly as long as told admits, and a millisecond less does not', () => {
  const full = { endMs: 5_000, used: 10 }
  for (const nowMs of [2_000, 4_000, 4_321, 4_999]) {
    const { waitMs } = fixedWindow.plan(full, limit, 1, nowMs * 1_000)
    expect(fixedWindow.plan(full, limit, 1, (nowMs + waitMs) * 1_000).waitMs).toBe(0)
    expect(fixedWindow.plan(full, limit, 1, (nowMs + waitMs - 1) * 1_000).waitMs).toBe(1)
  }
})

test('a refund gives back to its own window, not to the next, and never below nothing', () => {
  const state = { endMs: 5_000, used: 3 }
  expect(fixedWindow.refund(state, limit, { cost: 2, atUs: 4_100_000 }, 4_900_000)).toEqual({ endMs: 5_000, used: 1 })
  expect(fixedWindow.refund(state, limit, { cost: 9, atUs: 4_100_000 }, 4_900_000)).toEqual({ endMs: 5_000, used: 0 })
  expect(fixedWindow.refund(state, limit, { cost: 2, atUs: 4_100_000 }, 5_000_000)).toBeUndefined()
  expect(fixedWindow.refund({ endMs: 6_000, used: 3 }, limit, { cost: 2, atUs: 4_100_000 }, 5_100_000)).toBeUndefined()
})
