import type { RateQuestion, RateRow } from '@weir/clickhouse/rate-queries.ts'
import type { Watch } from '@weir/core/policy/policy.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import { expect, test } from 'vitest'
import { lookForChanges } from './rate-changes.ts'

const nowMs = Date.parse('2026-11-21T12:00:30Z')
const minuteMs = 60_000

const watch = (alert: Watch['alert']): Watch => ({
  ...{ name: alert === 'weir.denied_rate.high' ? 'refusals' : 'traffic', alert, per: 'subject' },
  ...{ windowMs: 5 * minuteMs, factor: 3, least: 100, cooldownMs: 3_600_000 },
})
const watches = new Map([watch('weir.denied_rate.high'), watch('weir.allowed.dropped')].map((one) => [one.name, one]))

/** A ClickHouse that knows what is asked of it, and answers the same to everything. */
function source(complete: Completeness, rows: readonly RateRow[] = []) {
  const asked: RateQuestion[] = []
  return {
    asked,
    completeness: async () => complete,
    async changed(question: RateQuestion) {
      asked.push(question)
      return rows
    },
  }
}
const completeUntil = (agoMs: number): Completeness => ({ completeThroughMs: nowMs - agoMs, silent: [] })

test('the last window whose decisions are all there is asked about, and what changed is claimed for the cooldown', async () => {
  const from = source(completeUntil(45_000), [{ subject: 'acme', count: 900, usual: 12.5 }])
  const { changes, behind } = await lookForChanges({ watches }, from, nowMs)
  const endMs = Date.parse('2026-11-21T11:59:00Z')
  expect(from.asked.map(({ isRise, endMs: end }) => [isRise, end])).toEqual([
    [true, endMs],
    [false, endMs],
  ])
  expect(behind).toBeUndefined()
  expect(changes).toHaveLength(2)
  expect(changes[0]).toEqual({
    ...{ kind: 'changed', watch: 'refusals', alert: 'weir.denied_rate.high', subject: 'acme', count: 900, usual: 12.5 },
    ...{ startMs: endMs - 5 * minuteMs, endMs, lifetimeMs: 3_600_000, isRecurring: true },
    thresholds: [{ percent: 100, key: 'quota_alert:{acme}:refusals:0:weir.denied_rate.high:cooldown' }],
  })
})

test('while metering is behind, or nothing is known, nothing is asked: what is missing would look like a fall', async () => {
  for (const complete of [completeUntil(20 * minuteMs), { completeThroughMs: undefined, silent: [] }]) {
    const from = source(complete, [{ subject: 'acme', count: 0, usual: 900 }])
    const { changes, behind } = await lookForChanges({ watches }, from, nowMs)
    expect([changes, from.asked]).toEqual([[], []])
    expect(behind).toMatch(/complete (until 2026-11-21T11:40:30.000Z|for no time) only/)
  }
})

test('a journal that is cut off is taken for no fall until it has left what is usual; a rise is found all the same', async () => {
  const cutOff = (agoMs: number) => ({
    completeThroughMs: nowMs,
    silent: [{ journal: 'j', sinceMs: nowMs - agoMs }],
  })
  const lately = source(cutOff(60 * minuteMs))
  expect((await lookForChanges({ watches }, lately, nowMs)).behind).toMatch(/^traffic: journal j is cut off since/)
  expect(lately.asked.map(({ isRise }) => isRise)).toEqual([true])
  const longAgo = source(cutOff(66 * minuteMs))
  expect((await lookForChanges({ watches }, longAgo, nowMs)).behind).toBeUndefined()
  expect(longAgo.asked).toHaveLength(2)
})

test('a policy without watches asks nothing', async () => {
  const from = source(completeUntil(0))
  expect(await lookForChanges({ watches: new Map() }, from, nowMs)).toEqual({ changes: [] })
  expect(from.asked).toEqual([])
})
