import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { connectLimiter } from '@weir/redis/connect.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { RedisTlsFiles } from '@weir/redis/redis-url.ts'
import { expect, onTestFinished, vi } from 'vitest'

/** A store as the ingress has it, for whatever the address names; it decides when this resolves. */
export async function openTopology(
  url: string,
  deadlineMs: number,
  options: { readonly tls?: RedisTlsFiles; readonly onError?: (error: Error) => void } = {},
): Promise<RedisLimitStore> {
  const redis = connectLimiter(url, { onError: () => undefined, ...options })
  const store = new RedisLimitStore({ redis, clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs })
  onTestFinished(() => {
    store.close()
    redis.disconnect()
  })
  await untilDecides(store)
  return store
}

/** Many subjects, so that in a Cluster every master answers. */
export async function untilDecides(store: RedisLimitStore): Promise<void> {
  const requests = Array.from({ length: 24 }, (_, at) =>
    buildLimitRequest({
      scope: buildScope({ subject: `awaited-${at}` }),
      limits: [buildLimit({ size: 1_000_000 })],
      peek: true,
    }),
  )
  await vi.waitFor(
    async () => {
      const decisions = await Promise.all(requests.map((request) => store.decide(request)))
      expect(decisions.map(({ reason }) => reason)).toEqual(requests.map(() => 'ok'))
    },
    { timeout: 15_000, interval: 20 },
  )
}
