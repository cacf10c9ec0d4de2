import { expect, test } from 'vitest'
import { createSampler } from './span-sampler.ts'

const countOf = (sampler: ReturnType<typeof createSampler>, parent?: 'sampled' | 'unsampled') =>
  Array.from({ length: 50 }, () => sampler(parent)).filter(Boolean).length

test('a parent decides where the sampler goes by it, and only there', () => {
  const numbers = { random: () => 0.5, nowMs: () => 0 }
  for (const [name, alone, under, beside] of [
    ['parentbased_traceidratio', 0, 50, 0],
    ['parentbased_always_on', 50, 50, 0],
    ['parentbased_always_off', 0, 50, 0],
    ['traceidratio', 0, 0, 0],
    ['always_on', 50, 50, 50],
    ['always_off', 0, 0, 0],
  ] as const) {
    const counts = [undefined, 'sampled', 'unsampled'] as const
    const found = counts.map((parent) => countOf(createSampler(name, 0.4, numbers), parent))
    expect([name, ...found]).toEqual([name, alone, under, beside])
  }
  expect(countOf(createSampler('traceidratio', 0.6, numbers))).toBe(50)
})

test('no more than 100 traces begin in a second, and no more than 50 that parents want', () => {
  let nowMs = 500
  const sampler = createSampler('parentbased_traceidratio', 1, { nowMs: () => nowMs })
  const traced = (parent?: 'sampled') => Array.from({ length: 250 }, () => sampler(parent)).filter(Boolean).length
  expect([traced('sampled'), traced(), traced('sampled')]).toEqual([50, 50, 0])
  nowMs = 999
  expect(traced()).toBe(0)
  nowMs = 1_000
  expect([traced(), traced('sampled')]).toEqual([100, 0])
})
