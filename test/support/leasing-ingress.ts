import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { createMemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { openMemoryIngress, sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { createLayers } from '@weir/redis/layers/all-layers.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { inject, onTestFinished } from 'vitest'
import { openLimiterRedis } from './test-redis.ts'

/** A minute that has just begun. */
export const startMs = Date.parse('2026-11-21T12:00:00.000Z')

/** The ingress over a real Redis, with a clock that a test moves and plans that give units ahead; for one test. */
export async function leasingIngress() {
  const subject = `leases-${randomUUID()}`
  const clock = { ms: startMs + 1_000, nowMs: () => clock.ms }
  const text = `
version: 1
plans:
  free: { limits: [minute, hour], clientLease: 2s }
  slow: { limits: [minute] }
  burst: { limits: [bucket], clientLease: 2s }
  dark: { limits: [minute, shadow], clientLease: 2s }
  guarded: { limits: [login], clientLease: 2s }
  none: { limits: [], clientLease: 2s }
  walk: { limits: [short, long], clientLease: 2s }
limits:
  short: { algorithm: fixed_window, size: 1500, window: 4s }
  long: { algorithm: sliding_window, size: 100000, window: 1h }
  minute: { algorithm: fixed_window, size: 1000, window: 1m }
  hour: { algorithm: sliding_window, size: 4000, window: 1h }
  bucket: { algorithm: token_bucket, size: 600, window: 1m, burst: 100, clientLease: true }
  shadow: { algorithm: fixed_window, size: 80, window: 1m, mode: shadow }
  login: { algorithm: fixed_window, size: 1000, window: 1m, block: 1m }
routes:
  - { match: GET /short, clientLease: 500ms }
  - { match: GET /not, clientLease: none }
  - { match: GET /dear, cost: 5 }
  - { match: GET /settled, settle: 1m }
subjects:
  ${['free', 'slow', 'burst', 'dark', 'guarded', 'none', 'walk'].map((plan) => `${subject}-${plan}: { plan: ${plan}, keys: [{ sha256: ${sha256(`${subject}-${plan}`)} }] }`).join('\n  ')}
  ${subject}-held: { plan: free, suspended: unpaid }
tokens: { app: { sha256: "${sha256('app-token')}", scopes: [check] } }
`
  const redis = await openLimiterRedis(inject('redisUrl'))
  const log = createMemoryDecisionLog()
  const common = { clock, periodBoundaries: createBoundaryCache(), deadlineMs: 20_000, now: clock.nowMs }
  const store = new RedisLimitStore({ redis, ...common })
  const layers = createLayers(store, { ...common, processes: () => 1 }).store
  const settlements = new RedisSettlements({ redis, owner: 'one', answerMs: 20_000, now: clock.nowMs })
  const apps = await openMemoryIngress(text, { store: layers, log, clock, settlements })
  onTestFinished(async () => {
    await apps.proxy.close()
    await apps.api.close()
    store.close()
  })
  const post = async (url: string, payload: unknown, token = 'app-token') => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await apps.api.inject({ method: 'POST', url, headers, payload: JSON.stringify(payload) })
    return { status: answer.statusCode, body: answer.json() }
  }
  const of = (plan: string) => ({ subject: `${subject}-${plan}` })
  return {
    ...apps,
    clock,
    log,
    subject,
    post,
    of,
    lease: async (plan: string, want: number, more = {}) => {
      const { body } = await post('/v1/leases', { lease: [{ ...of(plan), ...more, want }] })
      return body.leases[0]
    },
    used: async (plan: string) => {
      const { body } = await post('/v1/check', { ...of(plan), peek: true })
      return body.limits.map((state: { used: number }) => state.used)
    },
  }
}
