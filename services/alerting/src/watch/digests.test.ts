import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { digestsOf, spansDue } from './digests.ts'

const limit = { algorithm: 'fixed_window', size: 10, period: 'day' }
const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    plans: { free: { limits: ['day', 'tried'] } },
    limits: { day: limit, tried: { ...limit, mode: 'shadow' } },
    subjects: { acme: { plan: 'free', contact: { email: ['a@acme.example'], digest: 'daily' } } },
    endpoints: {
      ops: { url: 'https://ops.example.com/', secretEnv: 'S' },
      full: { type: 'subject', only: { percent: '100%' } },
      blocks: { type: 'subject', only: { types: ['weir.limit.blocked'] } },
    },
  }),
  'weir.yaml',
)
const id = (at: number) => `2ed6657d-e927-568b-95e1-${String(at).padStart(12, '0')}`
const quota = (at: number, percent: number, name = 'day'): AlertOf<'weir.quota.reached'> => ({
  ...{ id: id(at), type: 'weir.quota.reached', subject: 'acme', time: '2026-11-20T12:00:00.000Z' },
  data: { limit: name, size: 10, used: 8, percent, period_start: '', period_end: '', decision_id: id(0) },
})
const span = { fromMs: Date.parse('2026-11-20T00:00:00Z'), toMs: Date.parse('2026-11-21T00:00:00Z') }
const dueOf = (alerts: readonly AlertV1[]) => digestsOf(policy, { unit: 'daily', subject: 'acme', alerts }, span)

test('a day is over five minutes after midnight, and a week on Monday', () => {
  const at = (unit: 'daily' | 'weekly', now: string) => {
    const [{ fromMs, toMs } = span] = spansDue(unit, Date.parse(now), undefined)
    return [fromMs, toMs].map((ms) => new Date(ms).toISOString().slice(0, 16))
  }
  expect(at('daily', '2026-11-24T00:04:59Z')).toEqual(['2026-11-22T00:00', '2026-11-23T00:00'])
  expect(at('daily', '2026-11-24T00:05:00Z')).toEqual(['2026-11-23T00:00', '2026-11-24T00:00'])
  expect(at('weekly', '2026-11-23T00:04:59Z')).toEqual(['2026-11-09T00:00', '2026-11-16T00:00'])
  expect(at('weekly', '2026-11-29T23:59:59Z')).toEqual(['2026-11-16T00:00', '2026-11-23T00:00'])
})

test('days in which no process gathered come later, the oldest first, seven at most; one that was gathered does not', () => {
  const now = Date.parse('2026-11-24T12:00:00Z')
  const after = (day: string) =>
    spansDue('daily', now, Date.parse(day)).map(({ fromMs }) => new Date(fromMs).toISOString().slice(0, 10))
  expect(after('2026-11-23')).toEqual([])
  expect(after('2026-11-20')).toEqual(['2026-11-21', '2026-11-22', '2026-11-23'])
  expect(after('2026-10-01')).toHaveLength(7)
})

test('a digest has what its endpoint selects and a customer may know, under a claim of the subject, endpoint and day', () => {
  expect(dueOf([quota(1, 80), quota(2, 100), quota(3, 100, 'tried')])).toEqual([
    {
      ...{ kind: 'digest', subject: 'acme', startMs: span.fromMs, endMs: span.toMs, isRecurring: false },
      lifetimeMs: 30 * 3_600_000,
      thresholds: [{ percent: 100, key: 'quota_alert:{acme}:digest:full:daily:2026-11-20' }],
      about: {
        ...{ endpoint: 'full', digest: 'daily', count: 1 },
        alerts: [
          {
            ...{ id: id(2), type: 'weir.quota.reached', time: '2026-11-20T12:00:00.000Z' },
            title: 'acme has used 100 % of its limit day',
          },
        ],
      },
    },
  ])
  expect(dueOf([quota(1, 80)])).toEqual([])
})

test('a digest names the first fifty alerts, and counts them all', () => {
  const [due] = dueOf(Array.from({ length: 60 }, (_, at) => quota(at, 100)))
  expect([due?.about.count, due?.about.alerts.length, due?.about.alerts[0]?.id]).toEqual([60, 50, id(0)])
})
