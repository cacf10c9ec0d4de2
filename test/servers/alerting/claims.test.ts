import { randomUUID } from 'node:crypto'
import { createClaimStore } from '@weir/alerting/raise/claim-store.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'

let redis: ReturnType<typeof connectRedis>
beforeAll(async () => {
  redis = connectRedis(inject('redisUrl'), { role: 'claims', onError: () => undefined })
  await new Promise((ready) => redis.once('ready', ready))
})
afterAll(() => redis.disconnect())

const key = () => `quota_alert:{${randomUUID()}}:day:20:80:2026-11-21`

describe('claims', () => {
  it('go to exactly one of many that claim at the same time', async () => {
    const claims = createClaimStore(redis)
    const claimed = key()
    const states = await Promise.all(
      Array.from({ length: 50 }, () => claims.claim([{ key: claimed, lifetimeMs: 60_000, occurrenceId: '' }])),
    )
    expect(
      states
        .flat()
        .map(({ state }) => state)
        .sort(),
    ).toEqual(['acquired', ...Array(49).fill('pending')])
  })

  it('are pending until finished, and always expire', async () => {
    const claims = createClaimStore(redis)
    const [one, other] = [key(), key()]
    expect(await claims.claim([{ key: one, lifetimeMs: 60_000, occurrenceId: 'first' }])).toEqual([
      { state: 'acquired', occurrenceId: 'first' },
    ])
    const both = [one, other].map((claimed) => ({ key: claimed, lifetimeMs: 60_000, occurrenceId: 'second' }))
    expect(await claims.claim(both)).toEqual([
      { state: 'pending', occurrenceId: 'first' },
      { state: 'acquired', occurrenceId: 'second' },
    ])
    await claims.finish([{ key: one, lifetimeMs: 60_000 }])
    expect((await claims.claim(both)).map(({ state }) => state)).toEqual(['done', 'pending'])
    const ttl = await redis.pttl(one)
    expect(ttl > 50_000 && ttl <= 60_000).toBe(true)
  })
})
