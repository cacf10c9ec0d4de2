import { describe, expect, it } from 'vitest'
import { parseOutcomeQuestion, parseUsageQuestion } from './question.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

describe('a question', () => {
  it('by the minute reaches back as far as minutes are kept', () => {
    const ask = (from: string, to: string) => parseUsageQuestion({ from, to, step: 'minute' }, nowMs)
    expect(ask('2026-10-18', '2026-10-19')).toMatchObject({ kind: 'question' })
    expect(ask('2026-10-17', '2026-10-18')).toEqual({
      kind: 'problems',
      problems: ['step=minute reaches back 35 days'],
    })
  })

  it('about outcomes has no minutes, and is broken down by what their rollup has', () => {
    expect(parseOutcomeQuestion({ step: 'minute' }, nowMs)).toMatchObject({ kind: 'problems' })
    expect(parseOutcomeQuestion({ by: 'plan' }, nowMs)).toEqual({
      kind: 'problems',
      problems: ['by takes subject, route, method, but has plan'],
    })
    expect(parseOutcomeQuestion({ by: 'method,route' }, nowMs)).toMatchObject({ question: { by: ['route', 'method'] } })
  })
})
