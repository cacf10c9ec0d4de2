import type { Period } from '@weir/core/prices/forecast.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { Watch } from '@weir/policy/policy.ts'
import { describe, expect, it, test } from 'vitest'
import { evaluateWindow, lastWholeMinute, longestAbsenceMs, windowEndsToEvaluate } from './rate-changes.ts'
import type { RateQuestion, RateRow } from './rate-queries.ts'

const nowMs = Date.parse('2026-11-21T12:00:30Z')
const minuteMs = 60_000
const endMs = Date.parse('2026-11-21T12:00:00Z')
const firstMs = endMs - 65 * minuteMs

const watch = (alert: Watch['alert']): Watch => ({
  name: 'one',
  alert,
  per: 'subject',
  windowMs: 5 * minuteMs,
  factor: 3,
  least: 100,
  cooldownMs: 3_600_000,
})
const [rise, fall] = [watch('weir.denied_rate.high'), watch('weir.allowed.dropped')]

/** A ClickHouse that remembers what is asked of it. */
function source(about: { presence?: readonly Period[]; isMissing?: boolean; rows?: readonly RateRow[] } = {}) {
  const asked: RateQuestion[] = []
  return {
    asked,
    presence: async () => about.presence ?? [{ fromMs: 0, toMs: nowMs }],
    hasGaps: async () => about.isMissing ?? false,
    async changed(question: RateQuestion) {
      asked.push(question)
      return about.rows ?? []
    },
  }
}
const complete: Completeness = { completeThroughMs: nowMs, silent: [] }
const whyNot = async (...asked: Parameters<typeof evaluateWindow>) => {
  const evaluation = await evaluateWindow(...asked)
  return evaluation.kind === 'unknown' ? evaluation.why : evaluation.kind
}

describe('an evaluation', () => {
  it('asks about a window and twelve before it, leaves out subjects that were alerted, and claims for the cooldown', async () => {
    const from = source({ rows: [{ subject: 'acme', count: 900, usual: 12.5 }] })
    const evaluation = await evaluateWindow(rise, from, complete, endMs)
    expect(from.asked).toEqual([
      {
        outcome: 'deny',
        isRise: true,
        per: 'subject',
        firstMs,
        endMs,
        windowMs: 5 * minuteMs,
        windowsBefore: 12,
        factor: 3,
        least: 100,
        limit: 1_000,
        quiet: { watch: 'one', type: 'weir.denied_rate.high', sinceMs: endMs - 3_600_000 },
      },
    ])
    expect(evaluation).toEqual({
      kind: 'evaluated',
      changes: [
        {
          kind: 'changed',
          watch: 'one',
          alert: 'weir.denied_rate.high',
          subject: 'acme',
          count: 900,
          usual: 12.5,
          startMs: endMs - 5 * minuteMs,
          endMs,
          lifetimeMs: 3_600_000,
          isRecurring: true,
          thresholds: [{ percent: 100, key: 'quota_alert:{acme}:one:0:weir.denied_rate.high:cooldown' }],
        },
      ],
    })
  })

  it('counts refusals or accepted requests, and asks for a rise or a fall, by the type of the alert', async () => {
    const from = source()
    for (const one of [rise, watch('weir.allowed.high'), fall]) await evaluateWindow(one, from, complete, endMs)
    expect(from.asked.map(({ outcome, isRise }) => [outcome, isRise])).toEqual([
      ['deny', true],
      ['allow', true],
      ['allow', false],
    ])
  })

  it('takes a cut-off journal for no fall while its decisions are in the usual rate; a rise is found all the same', async () => {
    const cutOff = (sinceMs: number): Completeness => ({ ...complete, silent: [{ journal: 'j', sinceMs }] })
    expect(await whyNot(fall, source(), cutOff(firstMs), endMs)).toMatch(/^journal j has not reported since/)
    expect(await whyNot(fall, source(), cutOff(firstMs - 1), endMs)).toBe('evaluated')
    expect(await whyNot(rise, source(), cutOff(firstMs), endMs)).toBe('evaluated')
  })

  it('finds nothing where no ingress was there for a quarter of a window, nor where decisions are missing', async () => {
    const away = (ms: number) => [
      { fromMs: 0, toMs: endMs - 20 * minuteMs },
      { fromMs: endMs - 20 * minuteMs + ms, toMs: nowMs },
    ]
    expect(await whyNot(rise, source({ presence: away(75_000) }), complete, endMs)).toBe('evaluated')
    expect(await whyNot(rise, source({ presence: away(76_000) }), complete, endMs)).toMatch(
      /no ingress was running for 76 s/,
    )
    expect(await whyNot(fall, source({ presence: [] }), complete, endMs)).toMatch(/no ingress was running for 3900 s/)
    expect(await whyNot(fall, source({ isMissing: true }), complete, endMs)).toMatch(/table gaps/)
  })
})

test('the longest absence is found between, before and after the times of all journals, whatever their order', () => {
  const span = { fromMs: 100, toMs: 200 }
  const of = (...presence: Period[]) => longestAbsenceMs(presence, span)
  expect(of()).toBe(100)
  expect(of({ fromMs: 0, toMs: 300 })).toBe(0)
  expect(of({ fromMs: 150, toMs: 300 }, { fromMs: 0, toMs: 120 })).toBe(30)
  expect(of({ fromMs: 0, toMs: 190 }, { fromMs: 110, toMs: 120 })).toBe(10)
  expect(of({ fromMs: 140, toMs: 300 })).toBe(40)
})

test('the last whole minute is the last with complete decisions, unless that is long ago', () => {
  const at = (completeThroughMs: number | undefined) => lastWholeMinute({ completeThroughMs, silent: [] }, nowMs)
  expect(at(nowMs + 5_000)).toBe(endMs)
  expect(at(endMs - 1)).toBe(endMs - minuteMs)
  expect(at(endMs - 14 * minuteMs)).toBe(endMs - 14 * minuteMs)
  expect(at(endMs - 15 * minuteMs)).toBeUndefined()
  expect(at(undefined)).toBeUndefined()
})

test('every minute since the last evaluation is evaluated, except those of a quarter of an hour ago', () => {
  expect(windowEndsToEvaluate(undefined, endMs)).toEqual([endMs])
  expect(windowEndsToEvaluate(endMs, endMs)).toEqual([])
  expect(windowEndsToEvaluate(endMs + minuteMs, endMs)).toEqual([])
  expect(windowEndsToEvaluate(endMs - 3 * minuteMs, endMs)).toEqual([endMs - 2 * minuteMs, endMs - minuteMs, endMs])
  const all = windowEndsToEvaluate(0, endMs)
  expect([all.length, all[0]]).toEqual([15, endMs - 14 * minuteMs])
})
