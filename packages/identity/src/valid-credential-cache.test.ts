import { expect, it } from 'vitest'
import { createValidCredentialCache } from './valid-credential-cache.ts'

it('The cache remembers at least the latest 25,000 credentials for five minutes, and never more than twice as many', () => {
  const time = { ms: 0 }
  const cache = createValidCredentialCache(() => time.ms)
  const remembered = (from: number, to: number) => {
    let count = 0
    for (let n = from; n < to; n += 1) count += cache.has(`key ${n}`) ? 1 : 0
    return count
  }
  for (let n = 0; n < 130_000; n += 1) cache.add(`key ${n}`)
  expect(remembered(105_000, 130_000)).toBe(25_000)
  expect(remembered(0, 130_000)).toBeLessThanOrEqual(50_000)
  time.ms += 299_999
  cache.add('late')
  expect(remembered(105_000, 130_000)).toBe(25_000)
  for (let n = 0; n < 3; n += 1) {
    time.ms += 300_000
    cache.add(`later ${n}`)
  }
  expect(remembered(0, 130_000)).toBe(0)
})
