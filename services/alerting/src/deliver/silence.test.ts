import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { findSilence } from './silence.ts'

const [from, until] = ['2026-11-21T12:00:00Z', '2026-11-21T14:00:00+01:00']
const policyOf = (silences: object) => requirePolicy(JSON.stringify({ version: 1, silences }), 'weir.yaml')
const silenceOf = (alert: AlertV1, only: object) =>
  findSilence(alert, policyOf({ quiet: { ...only, from, until, by: 'root' } }))

const quotaAt = (time: string, subject = 'acme'): AlertV1 => ({
  id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  type: 'weir.quota.reached',
  time,
  subject,
  data: { limit: 'day', size: 10, used: 8, percent: 80, period_start: '', period_end: '', decision_id: '' },
})
const at = '2026-11-21T12:30:00.000Z'

test('A silence holds for alerts raised from its first instant to before its end, whenever they are read', () => {
  const of = (time: string) => silenceOf(quotaAt(time), { subjects: ['acme'] })
  expect(of('2026-11-21T11:59:59.999Z')).toBeUndefined()
  expect(of('2026-11-21T12:00:00.000Z')).toBe('quiet')
  expect(of('2026-11-21T12:59:59.999Z')).toBe('quiet')
  expect(of('2026-11-21T13:00:00.000Z')).toBeUndefined()
})

test('A silence holds for the alerts that meet all of its conditions', () => {
  expect(silenceOf(quotaAt(at), { subjects: ['bolt', 'acme'], limits: ['day'], types: ['weir.quota.reached'] })).toBe(
    'quiet',
  )
  for (const other of [{ subjects: ['bolt'] }, { limits: ['month'] }, { types: ['weir.limit.blocked'] }]) {
    expect(silenceOf(quotaAt(at), { subjects: ['acme'], ...other })).toBeUndefined()
  }
  const high: AlertV1 = {
    id: quotaAt(at).id,
    type: 'weir.allowed.high',
    time: at,
    subject: '_all',
    data: { watch: 'surges', window_start: '', window_end: '', count: 1, usual: 0 },
  }
  expect(silenceOf(high, { subjects: ['_all'] })).toBe('quiet')
  expect(silenceOf(high, { limits: ['day'] })).toBeUndefined()
})

test('No silence keeps a test from an endpoint', () => {
  const asked: AlertV1 = {
    id: quotaAt(at).id,
    type: 'weir.endpoint.test',
    time: at,
    subject: 'ops',
    data: { endpoint: 'ops' },
  }
  expect(silenceOf(asked, { subjects: ['ops'] })).toBeUndefined()
})

test('The end of an alert is silenced with the alert, and by nothing else but a silence that names ends', () => {
  const endOf = (reachedAt: string, time: string): AlertV1 => {
    const alert = quotaAt(time)
    if (alert.type !== 'weir.quota.reached') throw new Error('another alert')
    const data = { ...alert.data, resolves: alert.id, reached_at: reachedAt, reason: 'period_ended' }
    return { ...alert, type: 'weir.quota.resolved', data }
  }
  const [before, later] = ['2026-11-20T12:30:00.000Z', '2026-12-01T00:00:00.000Z']
  for (const only of [{ subjects: ['acme'] }, { types: ['weir.quota.reached'] }]) {
    expect(silenceOf(endOf(at, later), only)).toBe('quiet')
    expect(silenceOf(endOf(before, at), only)).toBeUndefined()
  }
  expect(silenceOf(endOf(before, at), { types: ['weir.quota.resolved'] })).toBe('quiet')
  expect(silenceOf(endOf(at, later), { types: ['weir.quota.resolved'] })).toBeUndefined()
})
