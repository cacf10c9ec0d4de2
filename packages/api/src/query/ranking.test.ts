import { describe, expect, it } from 'vitest'
import { isPosition, positionOf, readRanking, sortKeyOf } from './ranking.ts'
import { parseUsageQuery } from './usage-query.ts'

const read = (params: Readonly<Record<string, string>>, by: readonly string[] = ['subject']) => {
  const problems: string[] = []
  return { ranking: readRanking(params, by, problems), problems }
}

describe('the ranking of a question', () => {
  it('is by what allowed decisions used, the largest first, with all others as one row', () => {
    const ranking = { measure: 'cost', descending: true, top: 20, other: true }
    expect(read({ top: '20' })).toEqual({ ranking, problems: [] })
    expect(read({})).toEqual({ ranking: undefined, problems: [] })
    expect(read({ order: 'denied' }).ranking).toEqual({ measure: 'denied', descending: false, other: false })
  })

  it('names everything that is wrong with it', () => {
    expect(parseUsageQuery({ top: '1001', order: '-price', other: 'maybe' }, { nowMs: 0 })).toEqual({
      kind: 'problems',
      problems: [
        'top must be a number from 1 to 1000',
        'order must be one of cost, count, allowed, denied, change, optionally with a leading -',
        'other must be true or false',
        'top needs by: it takes the largest of some groups',
      ],
    })
    expect(read({ order: '-change' }).problems).toEqual(['order=change goes with compare'])
    expect(read({ order: '-change', compare: 'previous' }).ranking).toMatchObject({ measure: 'change' })
    expect(read({ other: 'true' }).problems).toEqual(['other goes with top'])
  })
})

describe('the position of a row', () => {
  const ranking = { measure: 'cost', descending: true, top: 3, other: true } as const
  const order = sortKeyOf({ step: 'day', by: ['subject'], ranking })
  const position = positionOf(order, { ts: '2026-11-01T00:00:00+05:45', subject: 'acme', other: false, cost: '-5' })

  it('has its time, whether it is the other one, its sum and its names', () => {
    expect(position).toEqual([String(Date.parse('2026-10-31T18:15:00Z') / 1_000), '0', '5', 'acme'])
    expect(isPosition(order, position)).toBe(true)
  })

  it.each([
    [[]],
    [position.slice(1)],
    [[...position, '']],
    [['1e9', '0', '5', 'a']],
    [['1', '2', '5', 'a']],
    [['1', '0', '5.5', 'a']],
  ])('is not %j', (wrong) => expect(isPosition(order, wrong)).toBe(false))

  it('has a change as ClickHouse writes it, and nothing that it cannot read', () => {
    const change = sortKeyOf({ step: 'total', by: [], ranking: { ...ranking, measure: 'change' } })
    const isRead = (text: string) => isPosition(change, positionOf(change, { change: text }).with(-1, text))
    expect(['inf', '-1.5', '0', '1e22', '2.5e-7'].filter(isRead)).toHaveLength(5)
    expect(['-1.5.5', '1e', '1+1', '1-1-1', '1eeee', '1e9999', '', '.5', 'nan'].filter(isRead)).toEqual([])
  })
})
