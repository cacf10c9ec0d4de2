import type { SlotCharge, SlotStore } from '@weir/core/limits/limit-store.ts'
import { buildLimitRequest } from '@weir/core/limits/testing/build-limit.ts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SlotKeeper } from './slot-keeper.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A store that answers a renewal once the test says so. */
function open() {
  const renewed: number[] = []
  const released: number[] = []
  let answer = (slot: SlotCharge): Promise<number> => Promise.resolve(slot.atUs + 10_000_000)
  const store: SlotStore = {
    renew(slot) {
      renewed.push(slot.atUs)
      return answer(slot)
    },
    release: async (slot) => released.push(slot.atUs),
  }
  const freed: number[] = []
  const keeper = new SlotKeeper(store, ({ atUs }) => freed.push(atUs))
  const slot = { request: buildLimitRequest({}), atUs: 1 }
  const answers = (next: typeof answer) => {
    answer = next
  }
  return { keeper, slot, renewed, released, freed, answers }
}

test('A slot is renewed every 10 s from its last renewal, and given back once', async () => {
  const { keeper, slot, renewed, released, freed } = open()
  const free = keeper.hold([slot])
  await vi.advanceTimersByTimeAsync(9_000)
  expect(renewed).toEqual([])
  await vi.advanceTimersByTimeAsync(23_000)
  expect(renewed).toEqual([1, 10_000_001, 20_000_001])
  expect(keeper.held).toBe(1)
  free()
  free()
  await vi.advanceTimersByTimeAsync(60_000)
  expect([keeper.held, released, freed]).toEqual([0, [30_000_001], [30_000_001]])
  expect(vi.getTimerCount()).toBe(0)
})

test('A renewal that Redis does not answer is tried again 10 s later, from the charge that is known', async () => {
  const { keeper, slot, renewed, answers } = open()
  answers(() => Promise.resolve(0))
  keeper.hold([slot])
  await vi.advanceTimersByTimeAsync(11_000)
  answers(() => Promise.reject(new Error('down')))
  await vi.advanceTimersByTimeAsync(22_000)
  expect(renewed).toEqual([1, 1, 1])
})

test('A request that ends while it is renewed gives back what the renewal took', async () => {
  const { keeper, slot, released, answers } = open()
  const renewal = Promise.withResolvers<number>()
  answers(() => renewal.promise)
  const free = keeper.hold([slot])
  await vi.advanceTimersByTimeAsync(11_000)
  free()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(released).toEqual([])
  renewal.resolve(77)
  await vi.advanceTimersByTimeAsync(0)
  expect(released).toEqual([77])
})
