import { describe, expect, it } from 'vitest'
import { parseOutcomeQuery, parseUsageQuery } from './usage-query.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

describe('a query of the rollups', () => {
  it('by the minute reaches back as far as minutes are kept', () => {
    const ask = (from: string, to: string) => parseUsageQuery({ from, to, step: 'minute' }, nowMs)
    expect(ask('2026-10-18', '2026-10-19')).toMatchObject({ kind: 'query' })
    expect(ask('2026-10-17', '2026-10-18')).toEqual({
      kind: 'problems',
      problems: ['step=minute reaches back 35 days'],
    })
  })

  it('about outcomes has no minutes, and is broken down by what their rollup has', () => {
    expect(parseOutcomeQuery({ step: 'minute' }, nowMs)).toMatchObject({ kind: 'problems' })
    expect(parseOutcomeQuery({ by: 'plan' }, nowMs)).toEqual({
      kind: 'problems',
      problems: ['by takes subject, route, method, but has plan'],
    })
    expect(parseOutcomeQuery({ by: 'method,route' }, nowMs)).toMatchObject({ query: { by: ['route', 'method'] } })
  })
})
