import { watchedAlerts } from '@weir/policy/policy.ts'
import { expect, test } from 'vitest'
import type { AlertV1 } from './alert.v1.ts'
import { describeAlert } from './describe-alert.ts'

const window = { window_start: '2026-11-21T11:55:00.000Z', window_end: '2026-11-21T12:00:00.000Z' }

test('A sudden change says which requests it counted, and which way they changed', () => {
  const texts = watchedAlerts.map((type) => {
    const data = { watch: 'one', ...window, count: 1_200, usual: 12.5 }
    const alert: AlertV1 = { id: '01a1fdfa-6d10-4540-81b4-576e9d55a36f', type, subject: 'acme', time: '', data }
    const { title, lines } = describeAlert(alert)
    return [title, lines[0]]
  })
  expect(texts).toEqual([
    ['acme is refused far more often than usual', 'Refused: 1,200, usually 12.5'],
    ['Far more requests from acme than usual', 'Accepted: 1,200, usually 12.5'],
    ['Far fewer requests from acme than usual', 'Accepted: 1,200, usually 12.5'],
  ])
})

test('An alert of a limit that counts money or tokens says so', () => {
  const of = { limit: 'month', percent: 80, decision_id: 'd', period_start: '', period_end: '' }
  const lineOf = (more: { readonly unit: string; readonly currency?: string; readonly used: number }) => {
    const data = { ...of, size: 20_000_000_000, ...more }
    return describeAlert({ id: '', subject: 'acme', time: '', type: 'weir.quota.reached', data }).lines[0]
  }
  expect(lineOf({ unit: 'usd', currency: 'USD', used: 16_005_000_000 })).toBe('Used: 16.005 USD of 20.00 USD')
  expect(lineOf({ unit: 'tokens', used: 9 })).toBe('Used: 9 of 20,000,000,000 tokens')
})

test('The end of an alert says what it was about and why it is over; what is used now unless its period has ended', () => {
  const period = { period_start: '2026-11-21T00:00:00.000Z', period_end: '2026-11-22T00:00:00.000Z' }
  const of = { limit: 'day', size: 2_000, used: 850, percent: 80, decision_id: 'd', resolves: '2ed6657d', ...period }
  const textsOf = (reason: string) => {
    const data = { ...of, reason, reached_at: '2026-11-21T09:12:44.310Z', by: { ip: '192.0.2.1' } }
    return describeAlert({ id: '', subject: 'acme', time: '', type: 'weir.quota.resolved', data })
  }
  expect(textsOf('size_changed')).toEqual({
    title: 'Resolved: acme has used 80% of its limit day',
    lines: [
      'Reason: the limit has changed',
      'Used: 850 of 2,000',
      'ip: 192.0.2.1',
      'Alert: 2ed6657d, 21 Nov 2026, 09:12 UTC',
    ],
  })
  expect(textsOf('period_ended').lines.slice(0, 2)).toEqual(['Reason: its period has ended', 'ip: 192.0.2.1'])
  expect(textsOf('used_less').lines[0]).toBe('Reason: less is used now')
  expect(textsOf('of a newer Weir').lines[0]).toBe('Reason: of a newer Weir')
})

test('A budget that an earlier release found reached says what the month cost, of how much', () => {
  const of = { prices: 'api', currency: 'EUR', budget: '20.00', amount: '17.00', percent: 80, period: '2026-11' }
  const data = { ...of, period_start: '2026-11-01T00:00:00.000Z', period_end: '2026-12-01T00:00:00.000Z' }
  const about = { id: '01a1fdfa-6d10-4540-81b4-576e9d55a36f', subject: 'acme', time: '' }
  expect(describeAlert({ ...about, type: 'weir.budget.reached', data })).toEqual({
    title: 'acme has reached 80% of its budget',
    lines: ['Cost so far: 17.00 of 20.00 EUR', 'Period: 2026-11'],
  })
})

test('A value that a caller chose stands in quotes on one line, cut, and without control characters or a link', () => {
  const data = {
    limit: 'otp',
    size: 1,
    used: 2,
    retry_ms: 1,
    until: '2026-11-21T12:00:00.000Z',
    decision_id: '01a1fdfa',
    by: { ip: '192.0.2.1', 'query:phone': 'x\r\n\u202ehttps://evil.example/"', 'body:/p': '\u001b'.repeat(20) },
  }
  const alert = { id: '', type: 'weir.limit.blocked', subject: 'https://evil.example', time: '', data } as AlertV1
  const { title, lines } = describeAlert(alert)
  expect(title).toBe('https:\\u002f\\u002fevil.example is blocked by the limit otp')
  expect(lines.slice(0, 3)).toEqual([
    'ip: 192.0.2.1',
    String.raw`query:phone: "x\u000d\u000a\u202ehttps:\u002f\u002fevil.example/\""`,
    `body:/p: "${String.raw`\u001b`.repeat(10)}\\u0…"`,
  ])
})

test('A time that is none keeps no alert from being described', () => {
  const data = { limit: 'day', size: 5, until: 'soon', decision_id: 'x' }
  const alert = { id: 'x', type: 'weir.limit.blocked', subject: 'acme', time: '', data } as AlertV1
  expect(describeAlert(alert).lines).toContain('Until: soon')
})
