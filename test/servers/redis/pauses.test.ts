import { buildLimit, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { createPauses } from '@weir/redis/pauses.ts'
import { expect, test } from 'vitest'
import { forTest } from '../../support/opened.ts'
import { startServer } from '../../support/servers/start-server.ts'
import { openLimiterRedis } from '../../support/test-redis.ts'

test('a pause that Redis refuses for want of rights, or by an error of its script, is told with the reason', async () => {
  const server = await forTest(startServer(redisServer))
  const redis = await openLimiterRedis(server.address)
  const told: string[] = []
  const pauses = createPauses({ redis, onFault: (error) => told.push(String(error)) })
  const [limit, scope] = [buildLimit(), buildScope()]
  expect(await pauses.pause(limit, scope, 1_000)).toBeGreaterThan(0)
  await redis.call('ACL', 'SETUSER', 'default', '-eval')
  expect(await pauses.pause(limit, scope, 1_000)).toBeUndefined()
  await redis.call('ACL', 'SETUSER', 'default', '+eval', '-pttl', '-pexpiretime', '-set', '-get')
  expect(await pauses.pause(limit, scope, 1_000)).toBeUndefined()
  expect(told).toEqual([expect.stringMatching(/NOPERM/), expect.stringMatching(/script/i)])
})
