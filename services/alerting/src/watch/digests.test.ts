import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { templateValues } from '../deliver/alert-templates.ts'
import { digestsOf, endsDue, spansEnded } from './digests.ts'

const limit = { algorithm: 'fixed_window', size: 10, period: 'day' }
const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    plans: { free: { limits: ['day', 'tried'] } },
    limits: { day: limit, tried: { ...limit, mode: 'shadow' } },
    subjects: {
      acme: { plan: 'free', timeZone: 'Asia/Kathmandu', contact: { email: ['a@acme.example'], digest: 'daily' } },
      bolt: { plan: 'free', contact: { email: ['b@bolt.example'], digest: 'daily', language: 'de' } },
    },
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
const span = { fromMs: Date.parse('2026-11-19T18:15:00Z'), toMs: Date.parse('2026-11-20T18:15:00Z') }
const german = { text: 'Subject: {{subject}}: {{percent}} % verbraucht\n', html: undefined }
const templates = {
  find: ({ language }: { readonly language?: string | undefined }) => (language === 'de' ? german : undefined),
}
const dueOf = (alerts: readonly AlertV1[], subject = 'acme') =>
  digestsOf(policy, { unit: 'daily', subject, alerts }, span, templates)

const iso = (ms: number) => new Date(ms).toISOString().slice(0, 16)
/** The last day or week that is due at a time, of those that ended within a length before. */
function lastAt(unit: 'daily' | 'weekly', timeZone: string, now: string) {
  const ended = endsDue(unit, Date.parse(now), undefined)
  const last = ended === undefined ? undefined : spansEnded(unit, timeZone, ended).at(-1)
  return last === undefined ? [] : [iso(last.fromMs), iso(last.toMs)]
}

test('a day is over five minutes after midnight, and a week on Monday, by the clocks of the subject', () => {
  expect(lastAt('daily', 'UTC', '2026-11-24T00:04:59Z')).toEqual(['2026-11-22T00:00', '2026-11-23T00:00'])
  expect(lastAt('daily', 'UTC', '2026-11-24T00:05:00Z')).toEqual(['2026-11-23T00:00', '2026-11-24T00:00'])
  expect(lastAt('daily', 'Asia/Kathmandu', '2026-11-24T18:19:59Z')).toEqual(['2026-11-22T18:15', '2026-11-23T18:15'])
  expect(lastAt('daily', 'Asia/Kathmandu', '2026-11-24T18:20:00Z')).toEqual(['2026-11-23T18:15', '2026-11-24T18:15'])
  expect(lastAt('daily', 'America/New_York', '2026-11-02T12:00:00Z')).toEqual(['2026-11-01T04:00', '2026-11-02T05:00'])
  expect(lastAt('weekly', 'UTC', '2026-11-23T00:04:59Z')).toEqual(['2026-11-09T00:00', '2026-11-16T00:00'])
  expect(lastAt('weekly', 'UTC', '2026-11-23T00:05:00Z')).toEqual(['2026-11-16T00:00', '2026-11-23T00:00'])
  expect(lastAt('weekly', 'Pacific/Kiritimati', '2026-11-22T10:05:00Z')).toEqual([
    '2026-11-15T10:00',
    '2026-11-22T10:00',
  ])
  expect(lastAt('weekly', 'Etc/GMT+12', '2026-11-23T12:05:00Z')).toEqual(['2026-11-16T12:00', '2026-11-23T12:00'])
})

test('each end of a day or week of any zone is due once, and none is asked for where no week can end', () => {
  const zones = ['UTC', 'Pacific/Kiritimati', 'Etc/GMT+12', 'Asia/Kathmandu', 'Pacific/Chatham', 'America/New_York']
  for (const [unit, ends] of [
    ['daily', 21],
    ['weekly', 3],
  ] as const) {
    const seen = new Map<string, string[]>(zones.map((zone) => [zone, []]))
    let gathered = Date.parse('2026-10-20T12:00:00Z')
    let rounds = 0
    for (let nowMs = gathered; nowMs < Date.parse('2026-11-10T12:06:00Z'); nowMs += 60_000) {
      const ended = endsDue(unit, nowMs, gathered)
      if (ended === undefined) continue
      gathered = ended.untilMs
      rounds += 1
      for (const zone of zones) seen.get(zone)?.push(...spansEnded(unit, zone, ended).map(({ toMs }) => iso(toMs)))
    }
    for (const [zone, own] of seen) expect([zone, own.length, new Set(own).size]).toEqual([zone, ends, ends])
    expect(rounds).toBeLessThanOrEqual(unit === 'daily' ? 21 * 96 : 3 * (26 * 4 + 1))
  }
})

test('days in which no process gathered come later, the oldest first, seven at most; one that was gathered does not', () => {
  const now = Date.parse('2026-11-24T12:00:00Z')
  const after = (gathered: string) => {
    const ended = endsDue('daily', now, Date.parse(gathered))
    return ended === undefined ? [] : spansEnded('daily', 'UTC', ended).map(({ fromMs }) => iso(fromMs).slice(0, 10))
  }
  expect(after('2026-11-24T11:45:00Z')).toEqual([])
  expect(after('2026-11-24T00:00:00Z')).toEqual([])
  expect(after('2026-11-21T00:00:00Z')).toEqual(['2026-11-21', '2026-11-22', '2026-11-23'])
  expect(after('2026-10-01T00:00:00Z')).toHaveLength(7)
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

test('the titles in a digest are the subjects of its contact’s own mails, and its template has them without words', () => {
  const [due] = dueOf([{ ...quota(1, 100), subject: 'bolt' }], 'bolt')
  expect(due?.about.alerts.map(({ title }) => title)).toEqual(['bolt: 100 % verbraucht'])
  if (due === undefined) return
  const data = { ...due.about, period_start: '', period_end: '' }
  const digest = { id: id(9), type: 'weir.alerts.digest', subject: 'bolt', time: '', data } as const
  expect(templateValues(digest).alerts).toBe('2026-11-20 12:00 UTC: bolt: 100 % verbraucht')
})
