import { expect, test } from 'vitest'
import type { Limit } from './limit.ts'
import { buildLimit, buildLimitRequest } from './testing/build-limit.ts'
import { unavailableDecision } from './unavailable.ts'

const limitWith = (name: string, onUnavailable: Limit['onUnavailable'], mode: Limit['mode'] = 'enforce') =>
  buildLimit({ name, onUnavailable, mode })

const requestOn = (...limits: Limit[]) => buildLimitRequest({ limits })

test('the first limit with onUnavailable: deny denies the request and is named', () => {
  const [open, strict, stricter] = [limitWith('open', 'allow'), limitWith('strict', 'deny'), limitWith('x', 'deny')]
  expect(unavailableDecision(requestOn(open, open), 'no')).toMatchObject({ allowed: true, deniedBy: '' })
  const refused = unavailableDecision(requestOn(open, strict, stricter), 'unknown')
  expect(refused).toMatchObject({ allowed: false, reason: 'unavailable', deniedBy: 'strict', charged: 'unknown' })
  expect(refused.retryAfterMs).toBeGreaterThan(0)
})

test('a limit with onUnavailable: local allows here, for the local fallback to decide, and a shadow limit denies nothing', () => {
  const request = requestOn(limitWith('near', 'local'), limitWith('trial', 'deny', 'shadow'))
  expect(unavailableDecision(request, 'no')).toMatchObject({ allowed: true, reason: 'unavailable', retryAfterMs: 0 })
})

test('a peek is never reported as charged', () => {
  expect(unavailableDecision({ ...requestOn(limitWith('a', 'allow')), peek: true }, 'unknown').charged).toBe('no')
})
