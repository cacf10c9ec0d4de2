import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { type LimitStore, unlimitedDecision } from '@weir/core/limits/limit-store.ts'
import { warmUp } from '@weir/ingress/warm-up.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, onTestFinished, test } from 'vitest'
import { forTest } from '../../support/opened.ts'
import { startServer } from '../../support/servers/start-server.ts'

const policy = requirePolicy(
  '{ version: 1, plans: {}, subjects: {}, limits: { minute: { algorithm: fixed_window, size: 1, window: 1m } } }',
  'weir.yaml',
)

/** As the ingress has both when it starts: the connection is not made yet. */
function open(url: string) {
  const redis = connectLimiter(url, { onError: () => undefined })
  const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 2_000 }
  const store = new RedisLimitStore({ redis, ...common })
  onTestFinished(() => {
    store.close()
    redis.disconnect()
  })
  const sources: string[] = []
  const watched: LimitStore = {
    async decide(request) {
      const { source = 'redis' } = await store.decide(request)
      sources.push(source)
      return unlimitedDecision
    },
    refund: async () => false,
  }
  const isUp = () => redis.status === 'ready' && store.serversDown === 0
  return { sources, warm: () => warmUp(policy, watched, isUp) }
}

test('a start warms up with decisions of Redis, and counts none without it', async () => {
  const server = await forTest(startServer(redisServer))
  const { sources, warm } = open(server.address)
  await warm()
  expect(sources).toEqual(Array.from({ length: 400 }, () => 'redis'))
})

test('a start without Redis goes on within seconds, and counts no decision', async () => {
  const [port] = await freePorts(1)
  const { sources, warm } = open(`redis://127.0.0.1:${port}`)
  await warm()
  expect(sources).toEqual([])
})
