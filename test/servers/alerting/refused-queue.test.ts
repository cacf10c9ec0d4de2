import { randomUUID } from 'node:crypto'
import { createDispatcher } from '@weir/alerting/deliver/dispatcher.ts'
import { systemClock } from '@weir/core/clock.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, inject, onTestFinished, test, vi } from 'vitest'

test('A queue whose Redis refuses to give jobs is asked again once a second, not in a loop', async () => {
  const operator = connectRedis(inject('redisUrl'), { role: 'queue', onError: () => undefined })
  const user = `test-${randomUUID()}`
  await operator.acl(
    'SETUSER',
    user,
    'on',
    '>password',
    '~*',
    '&*',
    '+@all',
    '-zpopmin',
    '-hgetall',
    '-lmove',
    '-rpoplpush',
  )
  const url = Object.assign(new URL(inject('redisUrl')), { username: user, password: 'password' })
  const redis = connectRedis(url.href, { role: 'queue', onError: () => undefined })
  const log = createLogger('test', 'silent')
  const refused: number[] = []
  vi.spyOn(log, 'warn').mockImplementation(() => void refused.push(performance.now()))
  const dispatcher = createDispatcher({ deliver: async () => ({ kind: 'over' }), redis, clock: systemClock, log })
  onTestFinished(async () => {
    await dispatcher.close()
    redis.disconnect()
    await operator.acl('DELUSER', user)
    operator.disconnect()
  })
  await vi.waitFor(() => expect(refused.length).toBeGreaterThanOrEqual(3), { timeout: 20_000 })
  expect((refused[2] ?? 0) - (refused[0] ?? 0)).toBeGreaterThan(1_900)
})
