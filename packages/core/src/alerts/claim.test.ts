import { expect, test } from 'vitest'
import { type Claim, claimKey, claimLifetimeMs, resolvedKey } from './claim.ts'

const claim: Claim = { subject: 'acme', limit: 'day', size: 5000, threshold: '80', periodStart: '2026-03-01' }

test('a claim names subject, limit, size, threshold and period', () => {
  expect(claimKey(claim)).toBe('quota_alert:{acme}:day:5000:80:2026-03-01')
})

test('no subject or name can pose as part of another claim', () => {
  expect(claimKey({ ...claim, subject: 'a}:day:1:{b', limit: 'x.y' })).toBe(
    'quota_alert:{a%7D%3Aday%3A1%3A%7Bb}:x%2Ey:5000:80:2026-03-01',
  )
})

test('the end of an alert is claimed by its id, in the slot of its subject, as no limit can be', () => {
  expect(resolvedKey('a:b', '2ed6657d')).toBe('quota_alert:{a%3Ab}:resolved:2ed6657d')
  expect(claimKey({ ...claim, subject: 'a:b', limit: 'resolved' })).toBe(
    'quota_alert:{a%3Ab}:resolved:5000:80:2026-03-01',
  )
})

test('a claim outlives its period by six hours, a day of 25 hours included', () => {
  const hourMs = 3_600_000
  expect(claimLifetimeMs('day')).toBe(30 * hourMs)
  expect(claimLifetimeMs('minute')).toBe(6 * hourMs + 60_000)
  expect(claimLifetimeMs('hour')).toBe(7 * hourMs)
  expect(claimLifetimeMs('week')).toBe(174 * hourMs)
  expect(claimLifetimeMs('month')).toBe((31 * 24 + 6) * hourMs)
})
