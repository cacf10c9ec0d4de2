import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect } from 'vitest'

/** Waits until the condition holds, and fails at the deadline. */
export async function until(condition: () => unknown, deadlineMs = 60_000): Promise<void> {
  expect(await waitUntil(async () => Boolean(await condition()), { deadlineMs, everyMs: 20 })).toBe(true)
}
