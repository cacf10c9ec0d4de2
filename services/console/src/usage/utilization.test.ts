import { expect, it } from 'vitest'
import type { Sources } from '../sources.ts'
import { openConsole } from '../testing/open-console.ts'
import type { UsageSource } from './usage-source.ts'
import type { UtilizationRow } from './utilization-queries.ts'

const [hourMs, dayMs] = [3_600_000, 86_400_000]
const policy = `
version: 1
plans: { free: { limits: [minute, day, month] }, other: { limits: [] } }
limits:
  minute: { algorithm: fixed_window, size: 10, window: 1m }
  day: { algorithm: fixed_window, size: 1000, period: day }
  month: { algorithm: fixed_window, size: 1000, period: month }
  by-key: { algorithm: fixed_window, size: 1000, period: month, by: [key], applies: all }
subjects:
  acme: { plan: free }
  kathmandu: { plan: free, timeZone: Asia/Kathmandu }
  mine: { plan: free, limits: { month: { size: 2000 } } }
  moved: { plan: other }
`

async function open(rows: readonly Partial<UtilizationRow>[], nowMs: number, found?: (position: object) => void) {
  const full = rows.map(
    (row): UtilizationRow => ({
      subject: 'acme',
      limit: 'month',
      share: 0.5,
      used: '500',
      size: '1000',
      at_ms: nowMs - hourMs,
      count: '3',
      refused: '1',
      shadow_refused: '0',
      cost: '2',
      pace_cost: 700,
      last_ms: nowMs - hourMs,
      last_used: 500,
      ...row,
    }),
  )
  const askUtilization: UsageSource['askUtilization'] = async (_reach, _query, position) => {
    found?.(position)
    return full
  }
  const desk = openConsole({ askUtilization, clock: { nowMs: () => nowMs } })
  expect((await desk.applyFile(policy)).statusCode).toBe(200)
  return desk.ask
}

const midMonth = Date.UTC(2026, 10, 20, 12)
const runsOut = async (row: Partial<UtilizationRow>, nowMs = midMonth) => {
  const ask = await open([row], nowMs)
  return (await ask('/v1/utilization')).json().rows[0].runs_out
}

it('a limit that has left the policy since is said to be removed', async () => {
  const ask = await open([{ limit: 'month' }, { limit: 'former' }], midMonth)
  const { rows } = (await ask('/v1/utilization')).json()
  expect(rows.map(({ limit, removed }: Record<string, unknown>) => [limit, removed])).toEqual([
    ['month', false],
    ['former', true],
  ])
})

it('a row has its numbers digit by digit, and says when its quota runs out by the mean of 7 days', async () => {
  const positions: object[] = []
  const row = { cost: '9007199254740993', count: '18446744073709551615' }
  const ask = await open([row], midMonth, (position) => positions.push(position))
  const { body } = await ask('/v1/utilization')
  expect(body).toContain('"count":18446744073709551615,"refused":1,"shadow_refused":0,"cost":9007199254740993')
  expect(JSON.parse(body)).toMatchObject({
    from: '2026-11-19T12:00:00.000Z',
    to: '2026-11-20T12:00:00.000Z',
    source: 'limits_15m',
    gaps: [],
    next: null,
    // 700 units in 7 days, and 500 are left: 5 days.
    rows: [{ subject: 'acme', share: 0.5, at: '2026-11-20T11:00:00.000Z', runs_out: '2026-11-25T12:00:00.000Z' }],
  })
  expect(positions).toEqual([{ after: undefined, rowsMax: 101, paceFromMs: midMonth - 7 * dayMs }])
  const { rows } = (await ask('/v1/utilization?numbers=text')).json()
  expect(rows[0]).toMatchObject({ ...row, used: '500', refused: '1', share: 0.5 })
})

it.each([
  ['is the answer’s own time where it is used up', { last_used: 1000 }, '2026-11-20T12:00:00.000Z'],
  ['is null where it lasts until the period ends', { pace_cost: 300 }, null],
  ['is null where nothing was used in 7 days', { pace_cost: 0, last_ms: 0, last_used: 0 }, null],
  ['forgets the period before', { last_ms: Date.UTC(2026, 9, 31, 23, 45), last_used: 1000, pace_cost: 300 }, null],
  ['is in the subject’s own version of the limit', { subject: 'mine', pace_cost: 7000 }, '2026-11-22T00:00:00.000Z'],
  ['is of days, too', { limit: 'day', pace_cost: 14000 }, '2026-11-20T18:00:00.000Z'],
  [
    'ends with the day of the subject’s zone',
    { limit: 'day', pace_cost: 14000, subject: 'kathmandu' },
    '2026-11-20T18:00:00.000Z',
  ],
  ['is not beyond the day of the subject’s zone', { limit: 'day', pace_cost: 13000, subject: 'kathmandu' }, null],
  ['is null for a window', { limit: 'minute', last_used: 10 }, null],
  ['is null for a limit that counts by more than the subject', { limit: 'by-key', last_used: 1000 }, null],
  ['is null for a limit that the policy lacks', { limit: 'gone', last_used: 1000 }, null],
  ['is null for a limit that does not apply to the subject any more', { subject: 'moved', last_used: 1000 }, null],
  ['is by UTC for a subject that the policy lacks', { subject: 'ip:192.0.2.7' }, '2026-11-25T12:00:00.000Z'],
] as const)('runs_out %s', async (_, row, expected) => {
  expect(await runsOut(row)).toBe(expected)
})

it('a page’s cursor is of its question alone, and the time of its pages is that of the first', async () => {
  const rows = ['a', 'b', 'c'].map((subject) => ({ subject }))
  const positions: { after?: readonly string[]; paceFromMs?: number }[] = []
  const ask = await open(rows, midMonth, (position) => positions.push(position))
  const first = await ask('/v1/utilization?limit=2')
  const { next, rows: page } = first.json()
  expect(page.map(({ subject }: { subject: string }) => subject)).toEqual(['a', 'b'])
  expect(first.headers.link).toBe(`</v1/utilization?limit=2&after=${next}>; rel="next"`)
  expect((await ask(`/v1/utilization?limit=2&after=${next}`)).statusCode).toBe(200)
  expect(positions[1]?.after).toEqual(['-0.5', 'b', 'month'])
  for (const other of ['order=share', 'share_from=0.8', 'met_limit=day', 'from=now-7d']) {
    const refused = await ask(`/v1/utilization?limit=2&${other}&after=${next}`)
    expect([other, refused.json().type]).toEqual([other, 'urn:weir:problem:cursor-invalid'])
  }
})

it('everything that is wrong with a question is in one answer, and what `limit` is not', async () => {
  const ask = await open([], midMonth)
  const wrong = 'limit=day&order=-used&share_from=80%25&share_to=-1&numbers=big&from=noon&colour=red'
  const { statusCode, body } = await ask(`/v1/utilization?${wrong}`)
  expect([statusCode, JSON.parse(body).detail.split('; ')]).toEqual([
    400,
    [
      'limit must be a number from 1 to 1000',
      'order must be one of share, count, refused, shadow_refused, cost, optionally with a leading -',
      'numbers must be json or text',
      'unknown parameters: colour',
      'known are subject, not_subject, met_limit, not_met_limit, subject_prefix, from, to, time_zone, share_from, share_to, order, numbers, limit, after',
      'from must be like 2026-01-31, 2026-01-31T14:00:00Z, now or now-24h (m, h, d), but is "noon"',
      'share_from must be a part of a limit’s size like 0.8, but is "80%"',
      'share_to must be a part of a limit’s size like 0.8, but is "-1"',
      'limit is the rows of a page, and met_limit the name of a limit',
    ],
  ])
  const { detail } = (await ask('/v1/utilization?share_from=0.8&share_to=0.8')).json()
  expect(detail).toBe('share_from must be below share_to')
})
