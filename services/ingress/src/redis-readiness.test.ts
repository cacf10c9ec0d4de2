import { expect, test } from 'vitest'
import { redisReadiness } from './redis-readiness.ts'

test('only a process that has not reached Redis yet is not ready for it, and not for long', async () => {
  let problem: string | undefined = 'away'
  const health = async () => ({ problem, warning: undefined })
  const patient = redisReadiness(health, Number.POSITIVE_INFINITY)
  const warned = { warning: "away; each limit's onUnavailable applies" }
  expect(await patient()).toBe('away')
  expect(await redisReadiness(health, 0)()).toEqual(warned)
  problem = undefined
  expect(await patient()).toBeUndefined()
  problem = 'away'
  expect(await patient()).toEqual(warned)
})
