import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describe, expect, it } from 'vitest'
import { noCounts } from '../metrics.ts'
import type { Crossing, RateChange } from '../types.ts'
import { AlertRaiser } from './raise-alerts.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

type QuotaAlert = AlertOf<'weir.quota.reached'>
const quotaOnly = (alerts: readonly AlertV1[]): QuotaAlert[] =>
  alerts.flatMap((alert) => (alert.type === 'weir.quota.reached' ? [alert] : []))

/**
 * Claims as Redis keeps them, ClickHouse's alerts, and a topic that may fail; all outlive a raiser, as they outlive a
 * process.
 */
function world() {
  const claims = new Map<string, string>()
  const published: QuotaAlert[] = []
  const others: AlertV1[] = []
  const late: QuotaAlert[] = []
  const known = new Set<string>()
  let roundTrips = 0
  let publishFails = false
  let starts = 0
  const start = () => {
    const counters = noCounts()
    starts += 1
    const startedMs = nowMs + starts * 1_000 // An id that followed from the time would be another one.
    const raiser = new AlertRaiser({
      claims: {
        async claim(wanted) {
          roundTrips += 1
          return wanted.map(({ key, occurrenceId }) => {
            const stands = claims.get(key)
            if (stands === undefined) claims.set(key, `pending ${occurrenceId}`)
            const [state, given = ''] = (stands ?? `acquired ${occurrenceId}`).split(' ')
            return { state: state === 'done' || state === 'acquired' ? state : 'pending', occurrenceId: given }
          })
        },
        keepFurther: async () => undefined,
        async finish(finished) {
          roundTrips += 1
          for (const { key } of finished) claims.set(key, 'done')
        },
      },
      history: {
        raised: async (alerts) => new Set(alerts.map(({ id }) => id).filter((id) => known.has(id))),
        keepLate: async (alerts) => void late.push(...quotaOnly(alerts)),
      },
      async publish(alerts) {
        if (publishFails) throw new Error('killed before publishing')
        published.push(...quotaOnly(alerts))
        others.push(...alerts.filter(({ type }) => type !== 'weir.quota.reached'))
      },
      clock: { nowMs: () => startedMs },
      counters,
    })
    return { raise: (...given: Parameters<AlertRaiser['raise']>) => raiser.raise(...given), counters }
  }
  const failPublish = (fails: boolean) => {
    publishFails = fails
  }
  return { claims, published, others, late, known, start, failPublish, roundTrips: () => roundTrips }
}

const crossing = (used: number, percents: readonly number[]): Crossing => ({
  subject: 'acme',
  limit: 'day',
  size: 20,
  used,
  decisionId: `decision-${used}`,
  decidedMs: nowMs - 40,
  kind: 'reached',
  lifetimeMs: 1_000,
  isRecurring: false,
  startMs: Date.parse('2026-11-21T00:00:00Z'),
  endMs: Date.parse('2026-11-22T00:00:00Z'),
  thresholds: percents.map((percent) => ({ percent, key: `quota_alert:{acme}:day:20:${percent}:2026-11-21` })),
})

describe('raising alerts', () => {
  it('raises each threshold once, however often decisions find it reached', async () => {
    const { start, published } = world()
    const { raise } = start()
    await raise([crossing(16, [80]), crossing(20, [100])])
    await raise([crossing(17, [80])])
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
    expect(counters.suppressed).toMatchObject({ superseded: 1 })
    // Raised a second after `nowMs`, and decided 40 ms before it.
    expect([counters.alertSeconds.count, counters.alertSeconds.sum]).toEqual([1, 1.04])
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
    expect([...claims.values()]).toEqual(['pending ', 'done'])
    failPublish(false)
    await start().raise([crossing(20, [100, 80])])
    expect(published.map(({ data }) => data.percent)).toEqual([100])

    claims.set('quota_alert:{acme}:day:20:100:2026-11-21', 'pending') // Killed between publishing and done.
    await start().raise([crossing(20, [100, 80])])
    expect(published.map(({ id }) => id)).toEqual([published[0]?.id, published[0]?.id])
  })

  it('sends nothing for a period that ended more than a quarter of an hour ago', async () => {
    const { start, published, late } = world()
    const { raise, counters } = start()
    const over = { ...crossing(20, [100, 80]), endMs: nowMs - 16 * 60_000 }
    await raise([over])
    await raise([over])
    expect([published.length, counters.suppressed.late]).toEqual([0, 1])
    expect(late.map(({ data }) => data.percent)).toEqual([100])
  })

  it.each([
    ['though Redis has forgotten all claims', undefined],
    ['and a process claimed before it was killed', 'pending'],
  ])('raises nothing again that ClickHouse knows, %s', async (_, claim) => {
    const { start, published, claims, known } = world()
    const key = 'quota_alert:{acme}:day:20:80:2026-11-21'
    await start().raise([crossing(16, [80])])
    for (const { id } of published) known.add(id)
    claims.clear()
    if (claim !== undefined) claims.set(key, claim)
    const { raise, counters } = start()
    await raise([crossing(16, [80]), crossing(20, [100])])
    expect(published.map(({ data }) => data.percent)).toEqual([80, 100])
    expect([counters.suppressed.forgotten, claims.get(key)]).toEqual([1, 'done'])
  })

  it('says until when a block lasts and what it is for, and when a quota runs out', async () => {
    const { start, others } = world()
    const { startMs, endMs } = crossing(20, [])
    const of = (key: string) => [{ percent: 100, key: `quota_alert:{acme}:day:20:${key}` }]
    const by = { ip: '192.0.2.1' }
    await start().raise([
      { ...crossing(20, []), kind: 'blocked', isRecurring: true, by, thresholds: of('blocked') },
      { ...crossing(10, []), kind: 'forecast', runsOutMs: startMs + 1, thresholds: of('forecast') },
    ])
    const [from, until] = [startMs, endMs].map((ms) => new Date(ms).toISOString())
    expect(others.map(({ type, data }) => [type, data])).toEqual([
      ['weir.limit.blocked', { limit: 'day', size: 20, until, decision_id: 'decision-20', by }],
      [
        'weir.quota.forecast',
        {
          limit: 'day',
          size: 20,
          used: 10,
          runs_out: '2026-11-21T00:00:00.001Z',
          period_start: from,
          period_end: until,
          decision_id: 'decision-10',
        },
      ],
    ])
  })

  it('asks Redis three times for a thousand crossings, not once for each', async () => {
    const { start, published, roundTrips } = world()
    const many = Array.from({ length: 1_000 }, (_, subject): Crossing => {
      const thresholds = [100, 80].map((percent) => ({
        percent,
        key: `quota_alert:{${subject}}:day:20:${percent}:2026`,
      }))
      return { ...crossing(20, []), subject: String(subject), thresholds }
    })
    await start().raise(many)
    expect([published.length, roundTrips()]).toEqual([1_000, 3])
  })

  it('raises a sudden change once, and after its claim has expired as another alert', async () => {
    const { start, claims, others } = world()
    const change = (count: number, endMs: number): RateChange => ({
      kind: 'changed',
      watch: 'refusals',
      alert: 'weir.denied_rate.high',
      subject: 'acme',
      count,
      usual: 2.5,
      startMs: endMs - 300_000,
      endMs,
      lifetimeMs: 3_600_000,
      isRecurring: true,
      thresholds: [{ percent: 100, key: 'quota_alert:{acme}:refusals:0:weir.denied_rate.high:cooldown' }],
    })
    await start().raise([change(400, nowMs - 60_000)])
    await start().raise([change(500, nowMs)])
    expect(others.map(({ type, data }) => [type, data])).toEqual([
      [
        'weir.denied_rate.high',
        {
          watch: 'refusals',
          count: 400,
          usual: 2.5,
          window_start: '2026-11-21T11:54:00.000Z',
          window_end: '2026-11-21T11:59:00.000Z',
        },
      ],
    ])
    claims.clear()
    await start().raise([change(500, nowMs)])
    expect(new Set(others.map(({ id }) => id)).size).toBe(2)
  })

  it('raises a block once, and the next one as another alert; a repeat after a kill is the same', async () => {
    const { start, claims, others, failPublish } = world()
    const block = (decisionId: string): Crossing => ({
      ...crossing(20, []),
      kind: 'blocked',
      isRecurring: true,
      decisionId,
      thresholds: [{ percent: 100, key: 'quota_alert:{acme}:day:20:blocked:cooldown' }],
    })
    const { raise } = start()
    await raise([block('first')])
    await raise([block('second')])
    expect(others.map(({ type }) => type)).toEqual(['weir.limit.blocked'])

    claims.clear() // The claim has expired with the block.
    failPublish(true)
    await expect(start().raise([block('third')])).rejects.toThrow('killed')
    failPublish(false)
    await start().raise([block('fourth')])
    await start().raise([block('fifth')])
    expect(others).toHaveLength(2)
    expect(others[1]?.id).not.toBe(others[0]?.id)
    const again = world()
    await again.start().raise([block('third')])
    expect(others[1]?.id).toBe(again.others[0]?.id)
  })
})
