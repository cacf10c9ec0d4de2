import { expect, test } from 'vitest'
import { type FixedWindowState, planFixedWindow } from './fixed-window.ts'

const limit = { size: 10, span: { kind: 'window', ms: 1_000 } } as const

test('whatever the clock does, units are never negative and a refusal stores nothing', () => {
  let state: FixedWindowState | undefined
  for (let at = 0; at < 2_000; at += 1) {
    const nowMs = 1_000_000 + ((at * 7_919) % 9_000)
    const plan = planFixedWindow(state, limit, at % 13, nowMs)
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
    const { waitMs } = planFixedWindow(full, limit, 1, nowMs)
    expect(planFixedWindow(full, limit, 1, nowMs + waitMs).waitMs).toBe(0)
    expect(planFixedWindow(full, limit, 1, nowMs + waitMs - 1).waitMs).toBe(1)
  }
})
