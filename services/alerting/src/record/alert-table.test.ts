import { type AlertV1, readAlert } from '@weir/contracts/alert.v1.ts'
import { expect, test } from 'vitest'
import { alertRow } from './alert-table.ts'

test('A row has what its type of alert has: other members of a foreign record reach no column', () => {
  const data = { endpoint: 'ops', size: 'many', used: -1, percent: 'all', decision_id: 'none', period_start: 'once' }
  const time = '2026-11-28T12:00:00Z'
  const of = { id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', type: 'weir.endpoint.test', subject: 'ops', time }
  const parsed = readAlert({ ...of, text: JSON.stringify(data) })
  if (parsed.kind !== 'alert') throw new Error('it is no alert')
  const second = Date.parse(time) / 1_000
  expect(alertRow(parsed.alert, 'raised')).toMatchObject({
    limit: '',
    size: 0,
    used: 0,
    percent: 0,
    decision_id: '00000000-0000-0000-0000-000000000000',
    period_start: second,
    period_end: second,
    data: JSON.stringify(data),
  })
})

test('An alert and its end have the same incident, and other alerts have none', () => {
  const id = '2ed6657d-e927-568b-95e1-2665a8aea6a2'
  const other = '01a1fdfa-6d10-4540-81b4-576e9d55a36f'
  const time = '2026-11-28T12:00:00Z'
  const period = { period_start: time, period_end: time, decision_id: id }
  const data = { limit: 'day', size: 10, used: 8, percent: 80, ...period }
  const about = { id, subject: 'acme', time }
  const incidentOf = (alert: AlertV1) => alertRow(alert, 'raised').incident
  expect(incidentOf({ ...about, type: 'weir.quota.reached', data })).toBe(id)
  const ended = { ...data, resolves: other, reached_at: time, reason: 'used_less' }
  expect(incidentOf({ ...about, type: 'weir.quota.resolved', data: ended })).toBe(other)
  expect(incidentOf({ ...about, type: 'weir.quota.forecast', data: { ...data, runs_out: time } })).toMatch(/^[0-]+$/)
})
