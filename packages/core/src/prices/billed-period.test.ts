import { expect, it } from 'vitest'
import { periodBefore, periodToClose, runningPeriod } from './billed-period.ts'

const ms = (time: string) => Date.parse(time)
const utc = { timeZone: 'UTC', anchor: 1 }
const moved = { timeZone: 'Asia/Kathmandu', anchor: 15 }

it.each([
  ['never invoiced', utc, undefined, '2026-11-21T12:00:00Z', '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z'],
  ['nothing moved', utc, '2026-10 2026-11-01', '2026-11-21T12:00:00Z', '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z'],
  ['moved', moved, '2026-10 2026-11-01', '2026-11-21T12:00:00Z', '2026-11-01T00:00:00Z', '2026-12-14T18:15:00Z'],
  [
    'moved, before',
    moved,
    '2026-10 2026-11-01',
    '2026-11-02T12:00:00Z',
    '2026-11-01T00:00:00Z',
    '2026-12-14T18:15:00Z',
  ],
  ['skipped', moved, '2026-08 2026-09-01', '2026-11-21T12:00:00Z', '2026-11-14T18:15:00Z', '2026-12-14T18:15:00Z'],
] as const)('The running month of a subject, %s, has the bounds that closing it gives it', (...given) => {
  const [, calendar, closed, now, from, to] = given
  const [period = '', end = ''] = closed?.split(' ') ?? []
  const last = closed === undefined ? undefined : { period, to: `${end}T00:00:00.000Z` }
  const running = runningPeriod(calendar, last, ms(now))
  expect(running).toEqual({ name: '2026-11', fromMs: ms(from), toMs: ms(to) })
  const earlier =
    last === undefined ? [] : [{ period: { name: period, from: '', to: last.to, time_zone: '', anchor: '' } }]
  expect(periodToClose(calendar, '2026-11', earlier)).toEqual({ fromMs: running.fromMs, toMs: running.toMs })
})

it.each([
  ['never invoiced', utc, undefined, '2026-10-01T00:00:00Z'],
  ['closed', moved, '2026-10-03', '2026-10-03T00:00:00Z'],
  ['skipped', moved, '2026-08-01', '2026-10-14T18:15:00Z'],
] as const)('The month before the running one, %s, ends where that begins', (_, calendar, from, begins) => {
  const to = from === '2026-08-01' ? '2026-09-01T00:00:00.000Z' : '2026-11-01T00:00:00.000Z'
  const last = from === undefined ? undefined : { period: from.slice(0, 7), from: `${from}T00:00:00.000Z`, to }
  const running = runningPeriod(calendar, last, ms('2026-11-21T12:00:00Z'))
  expect(periodBefore(calendar, last, running)).toEqual({ name: '2026-10', fromMs: ms(begins), toMs: running.fromMs })
})
