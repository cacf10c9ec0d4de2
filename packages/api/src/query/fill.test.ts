import { describe, expect, it } from 'vitest'
import { filledSteps } from './fill.ts'
import { parseUsageQuery } from './usage-query.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')
const ms = (text: string) => Date.parse(text)
const startsOf = (asked: Parameters<typeof filledSteps>[0]) =>
  filledSteps(asked, 900_000, undefined).starts.map((second) => new Date(second * 1_000).toISOString().slice(0, 16))

describe('the steps of an answer that is filled', () => {
  it('are those of the zone, the repeated hour of a day of 25 hours among them', () => {
    const [fromMs, toMs] = [ms('2026-11-01T05:00Z'), ms('2026-11-01T07:30Z')]
    const zone = { timeZone: 'America/New_York', fromMs, toMs } as const
    expect(startsOf({ ...zone, step: 'hour' })).toEqual(['2026-11-01T05:00', '2026-11-01T06:00', '2026-11-01T07:00'])
    expect(startsOf({ ...zone, step: 'day' })).toEqual(['2026-11-01T04:00'])
    expect(startsOf({ ...zone, toMs: ms('2026-12-02T00:00Z'), step: 'month' })).toEqual([
      '2026-11-01T04:00',
      '2026-12-01T05:00',
    ])
  })

  it('go on where clocks are set by half an hour', () => {
    const asked = {
      timeZone: 'Australia/Lord_Howe',
      step: 'hour',
      fromMs: ms('2026-04-04T13:00Z'),
      toMs: ms('2026-04-04T18:00Z'),
    } as const
    const starts = startsOf(asked)
    expect(starts).toEqual([...new Set(starts)].toSorted())
    expect(starts.length).toBeGreaterThan(4)
  })

  it('are counted once they are over, the last one at the end of the question', () => {
    const asked = { timeZone: 'UTC', step: 'hour', fromMs: ms('2026-11-01'), toMs: ms('2026-11-01T01:30Z') } as const
    const countedAt = (text: string) => filledSteps(asked, 900_000, ms(text)).counted
    expect(countedAt('2026-11-01T00:59:59Z')).toEqual([0, 0])
    expect(countedAt('2026-11-01T01:29Z')).toEqual([1, 0])
    expect(countedAt('2026-11-01T01:30Z')).toEqual([1, 1])
    expect(filledSteps(asked, 900_000, undefined).counted).toEqual([0, 0])
  })

  it('are at most 2,000, in order of time', () => {
    const ask = (more: Readonly<Record<string, string>>) => parseUsageQuery({ fill: 'zero', ...more }, { nowMs })
    expect(ask({})).toMatchObject({ query: { isFilled: true } })
    const words = 'fill supports at most 2000 steps: use a shorter period or a longer step'
    expect(ask({ from: 'now-84d' })).toEqual({ kind: 'problems', problems: [words] })
    expect(ask({ fill: 'linear', step: 'total', order: '-cost' })).toEqual({
      kind: 'problems',
      problems: ['fill must be zero', 'fill conflicts with order', 'fill needs a step other than total'],
    })
  })
})
