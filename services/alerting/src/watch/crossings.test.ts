import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { describe, expect, it } from 'vitest'
import { findCrossings } from './crossings.ts'

const policy = requirePolicy(
  `
version: 1
plans: { free: { limits: [day, minute] } }
limits:
  day: { algorithm: fixed_window, size: 10, period: day, thresholds: [80%, 100%] }
  minute: { algorithm: fixed_window, size: 5, window: 1m }
subjects:
  acme: { plan: free, timeZone: Asia/Kathmandu }
  own: { plan: free, timeZone: Asia/Kathmandu, limits: { day: { size: 10, thresholds: [50%] } } }
  chooser: { plan: free, timeZone: Asia/Kathmandu, ownAlerts: true }
ownAlerts: { chooser: { percents: [50%, 80%] } }
`,
  'weir.yaml',
)

/** A policy with this limit alone, of the plan of acme, whose days are those of Kathmandu. */
const policyWith = (name: string, limit: object) =>
  requirePolicy(
    JSON.stringify({
      version: 1,
      plans: { free: { limits: [name] } },
      limits: { [name]: { algorithm: 'fixed_window', size: 5, window: '1m', ...limit } },
      subjects: { acme: { plan: 'free', timeZone: 'Asia/Kathmandu' } },
    }),
    'weir.yaml',
  )

const kathmanduMidnightMs = Date.parse('2026-11-20T18:15:00Z')
const dayMs = 86_400_000

const decision = (used: number, resetMs: number, subject = 'acme') => ({
  ...({ v: 1, id: 'decision', ts: '', key_id: '', plan: 'free', route: '*', method: 'GET' } as const),
  ...({ cost: 1, count: 1, outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', denied_by: '' } as const),
  subject,
  limits: [
    { name: 'day', size: 10, used, remaining: 10 - used, reset_ms: resetMs },
    { name: 'minute', size: 5, used: 5, remaining: 0, reset_ms: 100 },
    { name: 'gone', size: 1, used: 1, remaining: 0, reset_ms: 100 },
  ],
  journal: 'journal',
  seq: 0,
})

describe('findCrossings', () => {
  it('says what a limit counts, and of money in which currency', () => {
    const measured = requirePolicy(
      `
version: 1
rateCards: { usd: { currency: USD, unknown: count, prices: [{ from: 2026-01-01T00:00:00Z, prices: { requests: "1" } }] } }
plans: { free: { limits: [money, tokens, asked] } }
limits:
  money: { algorithm: fixed_window, size: "20.00", period: day, unit: usd, mode: shadow }
  tokens: { algorithm: fixed_window, size: 10, period: day, unit: tokens }
  asked: { algorithm: fixed_window, size: 10, period: day, unit: requests }
subjects: { acme: { plan: free } }
`,
      'weir.yaml',
    )
    const limits = ['money', 'tokens', 'asked'].map((name) => {
      const size = name === 'money' ? 20_000_000_000 : 10
      return { name, size, used: size, remaining: 0, reset_ms: dayMs / 2 }
    })
    const found = findCrossings(measured, { ...decision(0, 0), limits }, kathmanduMidnightMs + dayMs / 2)
    expect(found.map((one) => one.measured)).toEqual([{ unit: 'usd', currency: 'USD' }, { unit: 'tokens' }, undefined])
  })

  it('is about the ancestor that a limit counts, in its calendar, and about a key by its own version', () => {
    const sha256 = 'a'.repeat(64)
    const tree = requirePolicy(
      `
version: 1
plans: { company: { limits: [day] }, member: { limits: [keys] } }
limits:
  day: { algorithm: fixed_window, size: 10, period: day, thresholds: [80%] }
  keys: { algorithm: fixed_window, size: 10, period: day, by: [key], thresholds: [] }
subjects:
  acme: { plan: company, timeZone: Asia/Kathmandu }
  u: { plan: member, parent: acme, keys: [{ sha256: ${sha256}, id: k, limits: { keys: { size: 4, thresholds: [50%] } } }] }
`,
      'weir.yaml',
    )
    const limits = [
      { name: 'day', size: 10, used: 8, remaining: 2, reset_ms: dayMs / 2, at: 'acme' },
      { name: 'keys', size: 4, used: 2, remaining: 2, reset_ms: dayMs / 2, by: { key: 'k' } },
    ]
    const found = findCrossings(tree, { ...decision(0, 0, 'u'), limits }, kathmanduMidnightMs + dayMs / 2)
    expect(found.map((one) => [one.subject, one.limit, one.thresholds.map(({ percent }) => percent)])).toEqual([
      ['acme', 'day', [80]],
      ['u', 'keys', [50]],
    ])
    expect(found[0]?.startMs).toBe(kathmanduMidnightMs)
  })

  it('adds the percentages that a customer has chosen to the thresholds of its calendar limits', () => {
    const percentsAt = (used: number) =>
      findCrossings(policy, decision(used, dayMs / 2, 'chooser'), kathmanduMidnightMs + dayMs / 2).map((one) => [
        one.limit,
        one.thresholds.map(({ percent }) => percent),
      ])
    expect(percentsAt(4)).toEqual([])
    expect(percentsAt(5)).toEqual([['day', [50]]])
    expect(percentsAt(9)).toEqual([['day', [80, 50]]])
    expect(findCrossings(policy, decision(5, dayMs / 2), kathmanduMidnightMs + dayMs / 2)).toEqual([])
  })

  it('forecasts that a quota ends before its period, in the zone of the subject, where its limit says so', () => {
    const day = { size: 10, window: undefined, period: 'day', thresholds: [], forecast: true }
    const forecasting = policyWith('day', day)
    const at = (used: number, share: number) =>
      findCrossings(forecasting, decision(used, dayMs * (1 - share)), kathmanduMidnightMs + dayMs * share)
    expect(at(5, 0.25)).toMatchObject([
      {
        kind: 'forecast',
        limit: 'day',
        size: 10,
        used: 5,
        isRecurring: false,
        runsOutMs: kathmanduMidnightMs + dayMs / 2,
        startMs: kathmanduMidnightMs,
        endMs: kathmanduMidnightMs + dayMs,
        thresholds: [{ key: 'quota_alert:{acme}:day:10:forecast:2026-11-21' }],
      },
    ])
    expect([at(5, 0.5), at(5, 0.05), at(10, 0.5)]).toEqual([[], [], []])
    expect(findCrossings(policy, decision(5, dayMs * 0.75), kathmanduMidnightMs + dayMs * 0.25)).toEqual([])
  })

  it('finds nothing below the first threshold, and nothing for limits without thresholds', () => {
    expect(findCrossings(policy, decision(7, 1_000), kathmanduMidnightMs + dayMs - 1_000)).toEqual([])
  })

  it('names the period by the local day of the subject', () => {
    const tsMs = kathmanduMidnightMs + 1_000
    const [crossing] = findCrossings(policy, decision(8, dayMs - 1_000), tsMs)
    expect(crossing?.thresholds).toEqual([{ percent: 80, key: 'quota_alert:{acme}:day:10:80:2026-11-21' }])
    expect([crossing?.startMs, crossing?.endMs]).toEqual([kathmanduMidnightMs, kathmanduMidnightMs + dayMs])
  })

  it('counts a decision to the day that Redis counted it in, though the clock of the ingress says another', () => {
    const [ahead] = findCrossings(policy, decision(10, 500), kathmanduMidnightMs + 700) // Redis: 500 ms before midnight
    expect(ahead?.thresholds[0]?.key).toBe('quota_alert:{acme}:day:10:100:2026-11-20')
    expect(ahead?.endMs).toBe(kathmanduMidnightMs)
    // Redis: 300 ms after it
    const [behind] = findCrossings(policy, decision(10, dayMs - 300), kathmanduMidnightMs - 700)
    expect(behind?.thresholds[0]?.key).toBe('quota_alert:{acme}:day:10:100:2026-11-21')
    expect(behind?.startMs).toBe(kathmanduMidnightMs)
  })

  it('keeps a subject that the policy no longer has, with days in UTC', () => {
    const [crossing] = findCrossings(policy, decision(10, 1_000, 'unknown'), Date.parse('2026-11-21T23:59:59Z'))
    expect(crossing?.thresholds[0]?.key).toBe('quota_alert:{unknown}:day:10:100:2026-11-21')
  })

  it("goes by the thresholds of the subject's own version of a limit", () => {
    const tsMs = kathmanduMidnightMs + 1_000
    const [crossing] = findCrossings(policy, decision(5, dayMs - 1_000, 'own'), tsMs)
    expect(crossing?.thresholds.map(({ percent }) => percent)).toEqual([50])
    expect(findCrossings(policy, decision(5, dayMs - 1_000), tsMs)).toEqual([])
  })

  it('finds nothing in a blocked decision: its reset is that of the block, which may end in another period', () => {
    const blocked = { ...decision(10, 3 * dayMs), reason: 'blocked' as const, outcome: 'deny' as const }
    expect(findCrossings(policy, blocked, kathmanduMidnightMs + 1_000)).toEqual([])
  })

  it('finds a window above its threshold, whose claim ends with its cooldown', () => {
    const windowed = policyWith('minute', { thresholds: ['80%', 5], cooldown: '1h' })
    const [crossing, ...more] = findCrossings(windowed, decision(1, 0), kathmanduMidnightMs)
    expect(more).toEqual([])
    expect(crossing).toMatchObject({ kind: 'reached', isRecurring: true, lifetimeMs: 3_600_000, used: 5 })
    expect(crossing?.thresholds).toEqual([
      { percent: 100, key: 'quota_alert:{acme}:minute:5:5u:cooldown' },
      { percent: 80, key: 'quota_alert:{acme}:minute:5:80:cooldown' },
    ])
    expect([crossing?.startMs, crossing?.endMs]).toEqual([kathmanduMidnightMs - 59_900, kathmanduMidnightMs + 100])
  })

  it('claims a block for each value that its limit counts by, in the words of the key in Redis', () => {
    const blocking = policyWith('otp', { block: '2m', by: ['subject', 'ip'] })
    const keysOf = (by: Readonly<Record<string, string>> | undefined) => {
      const limit = { name: 'otp', size: 5, used: 5, remaining: 0, reset_ms: 100 }
      const denied = { ...decision(1, 0), outcome: 'deny' as const, reason: 'limit' as const, denied_by: 'otp' }
      const limits = [by === undefined ? limit : { ...limit, by }]
      return findCrossings(blocking, { ...denied, limits }, 1_000).map((one) => [one.thresholds[0]?.key, one.by])
    }
    const [first, second] = [{ ip: '192.0.2.1' }, { 'header:x-team': 'sha256:a_b', ip: '2001:db8::/64' }]
    expect(keysOf(first)).toEqual([['quota_alert:{acme}:otp:5:blocked:cooldown:ip=192%2E0%2E2%2E1', first]])
    expect(keysOf(second)).toEqual([
      ['quota_alert:{acme}:otp:5:blocked:cooldown:ip=2001%3Adb8%3A%3A%2F64:header.x-team=sha256%3Aa_b', second],
    ])
    // A record of an older process.
    expect(keysOf(undefined)).toEqual([['quota_alert:{acme}:otp:5:blocked:cooldown', undefined]])
  })

  it('finds a block, from the refusal that began it and from those that follow, until it ends', () => {
    const blocking = policyWith('minute', { block: '10m' })
    const denied = { ...decision(1, 0), outcome: 'deny' as const, denied_by: 'minute' }
    const find = (reason: 'limit' | 'blocked' | 'unavailable', outcome: 'allow' | 'deny' = 'deny') =>
      findCrossings(blocking, { ...denied, reason, outcome }, 1_000).map((one) => [one.kind, one.endMs, one.lifetimeMs])
    expect(find('limit')).toEqual([['blocked', 601_000, 600_000]])
    expect(find('blocked')).toEqual([['blocked', 1_100, 100]])
    expect(find('unavailable')).toEqual([])
    expect(find('limit', 'allow')).toEqual([])
    expect(findCrossings(blocking, { ...denied, reason: 'limit', denied_by: 'other' }, 1_000)).toEqual([])
  })

  it('finds how long a block that grows is, where the count is over before it', () => {
    const growing = policyWith('minute', { block: ['2m', '1h'] })
    const lifetime = (resetMs: number) => {
      const limits = [{ name: 'minute', size: 5, used: 5, remaining: 0, reset_ms: resetMs }]
      const denied = { ...decision(1, 0), limits, outcome: 'deny' as const, denied_by: 'minute' }
      return findCrossings(growing, { ...denied, reason: 'limit' }, 1_000).map((one) => one.lifetimeMs)
    }
    expect([lifetime(120_000), lifetime(3_600_000), lifetime(60_000)]).toEqual([[120_000], [3_600_000], [120_000]])
  })
})
