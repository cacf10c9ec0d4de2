import { expect, test } from 'vitest'
import { UncountedShare } from './uncounted-share.ts'

test('the share of decisions without Redis is that of the last five minutes', () => {
  const sources = { redis: 90, lease: 5, deny_cache: 4, local: 0, unavailable: 1, none: 1_000 }
  const share = new UncountedShare(sources)
  expect(share.ratio).toBe(0.01)
  for (let second = 0; second < 300; second += 10) share.sample()
  expect(share.ratio).toBe(0)
  sources.redis += 3
  sources.local += 1
  expect(share.ratio).toBe(0.25)
})
