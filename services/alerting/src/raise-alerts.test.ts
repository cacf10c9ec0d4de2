import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describe, expect, it } from 'vitest'
import type { Crossing } from './crossings.ts'
import type { ClaimState } from './ports.ts'
import { createAlertRaiser } from './raise-alerts.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

/** Claims as Redis keeps them, and a topic that may fail; both outlive a raiser, as they outlive a process. */
function world() {
  const claims = new Map<string, 'pending' | 'done'>()
  const published: AlertV1[] = []
  let publishFails = false
  const start = () => {
    const counters = { raised: 0, superseded: 0, late: 0 }
    const raise = createAlertRaiser({
      claims: {
        async claim(wanted) {
          return wanted.map(({ key }): ClaimState => {
            const stands = claims.get(key)
            if (stands === undefined) claims.set(key, 'pending')
            return stands ?? 'acquired'
          })
        },
        async finish(keys) {
          for (const key of keys) claims.set(key, 'done')
        },
      },
      topic: {
        async publish(alert) {
          if (publishFails) throw new Error('killed before publishing')
          published.push(alert)
        },
      },
      clock: { nowMs: () => nowMs },
      counters,
    })
    return { raise, counters }
  }
  return { claims, published, start, failPublish: (fails: boolean) => (publishFails = fails) }
}

const crossing = (used: number, percents: readonly number[]): Crossing => ({
  subject: 'acme',
  limit: 'day',
  size: 20,
  used,
  decisionId: `decision-${used}`,
  periodStartMs: Date.parse('2026-11-21T00:00:00Z'),
  periodEndMs: Date.parse('2026-11-22T00:00:00Z'),
  lifetimeMs: 1_000,
  thresholds: percents.map((percent) => ({ percent, key: `quota_alert:{acme}:day:20:${percent}:2026-11-21` })),
})

describe('raising alerts', () => {
  it('raises each threshold once, however often decisions find it reached', async () => {
    const { start, published } = world()
    const { raise } = start()
    await raise([crossing(16, [80]), crossing(17, [80]), crossing(20, [100, 80])])
    await raise([crossing(20, [100, 80])])
    expect(published.map(({ data }) => [data.percent, data.used])).toEqual([
      [80, 16],
      [100, 20],
    ])
  })

  it('raises the highest of several that one decision crossed, and the others never', async () => {
    const { start, published } = world()
    const { raise, counters } = start()
    await raise([crossing(20, [100, 80])])
    await start().raise([crossing(20, [80]), crossing(20, [100, 80])])
    expect(published.map(({ data }) => data.percent)).toEqual([100])
    expect(counters).toMatchObject({ raised: 1, superseded: 1 })
  })

  it('raises nothing that another process has raised', async () => {
    const { start, published } = world()
    await start().raise([crossing(16, [80])])
    await start().raise([crossing(16, [80])])
    expect(published).toHaveLength(1)
  })

  it('raises what a process claimed that was killed before it published, under the same id', async () => {
    const { start, published, failPublish, claims } = world()
    failPublish(true)
    await expect(start().raise([crossing(20, [100, 80])])).rejects.toThrow('killed')
    expect([...claims.values()]).toEqual(['pending', 'done'])
    failPublish(false)
    await start().raise([crossing(20, [100, 80])])
    expect(published.map(({ data }) => data.percent)).toEqual([100])

    claims.set('quota_alert:{acme}:day:20:100:2026-11-21', 'pending') // Killed between publishing and done.
    await start().raise([crossing(20, [100, 80])])
    expect(published.map(({ id }) => id)).toEqual([published[0]?.id, published[0]?.id])
  })

  it('sends nothing for a period that ended more than a quarter of an hour ago', async () => {
    const { start, published } = world()
    const { raise, counters } = start()
    await raise([{ ...crossing(16, [80]), periodEndMs: nowMs - 16 * 60_000 }])
    expect([published.length, counters.late]).toEqual([0, 1])
  })
})
