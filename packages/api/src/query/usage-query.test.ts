import { describe, expect, it } from 'vitest'
import { parseOutcomeQuery, parseUsageQuery } from './usage-query.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')

describe('a query of the rollups', () => {
  it('by the minute reaches back as far as minutes are kept', () => {
    const ask = (from: string, to: string) => parseUsageQuery({ from, to, step: 'minute' }, { nowMs })
    expect(ask('2026-10-18', '2026-10-19')).toMatchObject({ kind: 'query' })
    expect(ask('2026-10-17', '2026-10-18')).toEqual({
      kind: 'problems',
      problems: ['step=minute reaches back 35 days'],
    })
  })

  it('counts minutes, hours and days back from now', () => {
    const ask = (from: string, to = 'now') => parseUsageQuery({ from, to }, { nowMs })
    const span = (from: string) => ({ query: { fromMs: Date.parse(from), toMs: nowMs } })
    expect(ask('now-24h')).toMatchObject(span('2026-11-20T12:00:00Z'))
    expect(ask('now-90m')).toMatchObject(span('2026-11-21T10:30:00Z'))
    expect(ask('now-30d')).toMatchObject(span('2026-10-22T12:00:00Z'))
    expect(ask('now-2d', 'now-1d')).toMatchObject({ query: { toMs: Date.parse('2026-11-20T12:00:00Z') } })
    expect(ask('now')).toEqual({ kind: 'problems', problems: ['from must lie before to'] })
    for (const text of ['now-', 'now-1', 'now+1h', 'now-1.5h', 'now-1w', 'now-10000d', 'NOW', ' now', 'now-24h ']) {
      const forms = '2026-01-31, 2026-01-31T14:00:00Z, now or now-24h (m, h, d)'
      expect(ask(text)).toEqual({
        kind: 'problems',
        problems: [`from must be like ${forms}, but is ${JSON.stringify(text)}`],
      })
    }
  })

  it('is broken down by four columns at most', () => {
    const ask = (by: string) => parseUsageQuery({ by }, { nowMs })
    expect(ask('subject,plan,route,method')).toMatchObject({ kind: 'query' })
    expect(ask('subject,plan,route,method,outcome')).toMatchObject({ kind: 'problems' })
  })

  it('of what only decisions have takes a day of everybody, and 31 days of a subject, a key or an address', () => {
    const ask = (more: Readonly<Record<string, string>>, isNarrow = false) =>
      parseUsageQuery({ from: '2026-10-01', to: '2026-11-01', ...more }, { nowMs, isNarrow })
    const named =
      'reason, met_limit: only the decisions themselves have it, so name a subject, a key_id or an ip, or ask for at most 24 hours'
    expect(ask({ by: 'reason', not_met_limit: 'day' })).toEqual({ kind: 'problems', problems: [named] })
    expect(ask({ by: 'ip', from: '2026-10-31' })).toMatchObject({ query: { by: ['ip'] } })
    expect(ask({ ip: '192.0.2.1' })).toMatchObject({ query: { only: { ip: ['192.0.2.1'] } } })
    expect(ask({ by: 'mode', key_id: 'a-1' })).toMatchObject({ query: { by: ['mode'] } })
    expect(ask({ by: 'met_limit' }, true)).toMatchObject({ query: { by: ['met_limit'] } })
    expect(ask({ by: 'ip', subject: 'acme', to: '2026-11-02' })).toEqual({
      kind: 'problems',
      problems: ['ip: only the decisions themselves have it, so from and to may be at most 31 days apart'],
    })
  })

  it('of a period is of the subject’s own month, in its zone and from its day on', () => {
    const calendar = { timeZone: 'Asia/Kathmandu', anchor: 31 }
    const ask = (more: Readonly<Record<string, string>>) => parseUsageQuery(more, { nowMs, calendar })
    const span = (from: string, to: string, timeZone = 'Asia/Kathmandu') => ({
      query: { fromMs: Date.parse(from), toMs: Date.parse(to), timeZone },
    })
    const [october, november, december] = ['2026-10-31T00:00+05:45', '2026-11-30T00:00+05:45', '2026-12-31T00:00+05:45']
    expect(ask({ period: '2026-11' })).toMatchObject(span(november, december))
    expect(ask({ period: 'current' })).toMatchObject(span(october, november))
    expect(ask({ period: 'previous', time_zone: 'UTC' })).toMatchObject(span('2026-09-30T00:00+05:45', october, 'UTC'))
    expect(ask({ period: 'next', to: 'now' })).toEqual({
      kind: 'problems',
      problems: ['period goes without from and to', 'period must be like 2026-11, current or previous, but is "next"'],
    })
    expect(parseUsageQuery({ period: 'current' }, { nowMs })).toEqual({
      kind: 'problems',
      problems: ['period takes exactly one subject, whose month it is'],
    })
  })

  it('about outcomes has no minutes, and is broken down by what their rollup has', () => {
    // One problem: what is said of minutes where there are some is not said here.
    const minutes = parseOutcomeQuery({ step: 'minute', from: 'now-40d' }, { nowMs })
    expect(minutes).toEqual({ kind: 'problems', problems: [expect.stringMatching(/^step /)] })
    expect(parseOutcomeQuery({ by: 'plan' }, { nowMs })).toEqual({
      kind: 'problems',
      problems: ['by takes subject, route, method, but has plan'],
    })
    expect(parseOutcomeQuery({ by: 'method,route' }, { nowMs })).toMatchObject({ query: { by: ['route', 'method'] } })
  })
})
