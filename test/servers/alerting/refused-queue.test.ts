import { createDispatcher } from '@weir/alerting/deliver/dispatcher.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startServer } from '../../support/servers/start-server.ts'

const nowMs = Date.now()

test('A queue whose Redis refuses to give jobs is asked again once a second, not in a loop, and says what waits in it', async () => {
  const server = await startServer(redisServer)
  const operator = connectRedis(server.address, { role: 'queue', onError: () => undefined })
  const refusals = ['-zpopmin', '-hgetall', '-lmove', '-rpoplpush']
  await operator.acl('SETUSER', 'refused', 'on', '>password', '~*', '&*', '+@all', ...refusals)
  const url = Object.assign(new URL(server.address), { username: 'refused', password: 'password' })
  const redis = connectRedis(url.href, { role: 'queue', onError: () => undefined })
  const log = createLogger('test', 'silent')
  const refused: number[] = []
  vi.spyOn(log, 'warn').mockImplementation(() => void refused.push(performance.now()))
  const clock = { nowMs: () => nowMs }
  const dispatcher = createDispatcher({ deliver: async () => ({ kind: 'over' }), redis, clock, log })
  onTestFinished(async () => {
    await dispatcher.close()
    redis.disconnect()
    operator.disconnect()
    await server.close()
  })
  await vi.waitFor(() => expect(refused.length).toBeGreaterThanOrEqual(3), { timeout: 20_000 })
  expect((refused[2] ?? 0) - (refused[0] ?? 0)).toBeGreaterThan(1_900)
  expect(await dispatcher.state()).toEqual({ waiting: { ready: 0, delayed: 0, active: 0 }, oldestReadyMs: 0 })
  const attributes = { id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', subject: 'ops', time: new Date(nowMs).toISOString() }
  const alert = { ...attributes, type: 'weir.endpoint.test', data: { endpoint: 'ops' } } as const
  const jobs = [-60_000, -30_000, 60_000].map((offMs) => {
    const dueMs = nowMs + offMs
    return { alert, endpoint: 'ops', requestedMs: dueMs, attempts: 0, dueMs, giveUpMs: dueMs + 86_400_000 }
  })
  await dispatcher.enqueue(jobs)
  expect(await dispatcher.state()).toEqual({ waiting: { ready: 2, delayed: 1, active: 0 }, oldestReadyMs: 60_000 })
})
