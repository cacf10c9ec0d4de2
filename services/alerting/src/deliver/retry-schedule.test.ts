import { deliveryAttemptsMax, giveUpAfterMs } from '@weir/contracts/delivery.v1.ts'
import { expect, test } from 'vitest'
import { nextTryMs, parseRetryAfter } from './retry-schedule.ts'

const hourMs = 3_600_000

test('ten attempts span more than three days, and end before an alert is given up for its age', () => {
  for (const random of [0, 0.999]) {
    let nowMs = 0
    let attempts = 1
    for (let next = nextTryMs({ attempts, nowMs }, () => random); next !== undefined; attempts += 1) {
      nowMs = next
      next = nextTryMs({ attempts: attempts + 1, nowMs }, () => random)
    }
    expect(attempts).toBe(deliveryAttemptsMax)
    expect(nowMs).toBeGreaterThan(75 * hourMs)
    expect(nowMs).toBeLessThan(giveUpAfterMs)
  }
})

test('a pause is longer by chance, and never shorter than an endpoint asks for', () => {
  expect(nextTryMs({ attempts: 1, nowMs: 1_000 }, () => 0)).toBe(6_000)
  expect(nextTryMs({ attempts: 1, nowMs: 1_000 }, () => 0.5)).toBe(6_500)
  expect(nextTryMs({ attempts: 1, nowMs: 1_000, retryAfterMs: 90_000 }, () => 0.5)).toBe(91_000)
  expect(nextTryMs({ attempts: 2, nowMs: 0, retryAfterMs: 1_000 }, () => 0)).toBe(300_000)
  expect(nextTryMs({ attempts: 1, nowMs: 0, retryAfterMs: 1e12 }, () => 0)).toBe(24 * hourMs)
})

test('Retry-After is seconds or a date', () => {
  const nowMs = Date.parse('2026-11-21T12:00:00Z')
  expect(parseRetryAfter('120', nowMs)).toBe(120_000)
  expect(parseRetryAfter('Sat, 21 Nov 2026 12:00:30 GMT', nowMs)).toBe(30_000)
  expect(parseRetryAfter('Sat, 21 Nov 2026 11:00:00 GMT', nowMs)).toBe(0)
  expect(['', '-1', '1.5', 'soon', undefined].map((text) => parseRetryAfter(text, nowMs))).toEqual(
    Array(5).fill(undefined),
  )
})
