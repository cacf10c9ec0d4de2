import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { chooseEndpoints } from './queue-alerts.ts'

const url = 'https://hooks.example.com/'
const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    plans: { free: { limits: [] } },
    endpoints: {
      all: { url, secretEnv: 'S' },
      full: { url, secretEnv: 'S', only: { types: ['weir.quota.reached'], percent: '100%' } },
      acme: { type: 'slack', urlEnv: 'U', only: { subjects: ['acme'] } },
      days: { type: 'email', to: ['ops@example.com'], only: { limits: ['day'] }, paused: true },
      none: { url, secretEnv: 'S', only: { types: [] } },
    },
  }),
  'weir.yaml',
)

const attributes = { id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', time: '2026-11-21T12:00:00Z' }
const quota = (subject: string, percent: number, limit = 'day'): AlertOf<'weir.quota.reached'> => ({
  ...{ ...attributes, type: 'weir.quota.reached', subject },
  data: { limit, size: 10, used: 8, percent, period_start: '', period_end: '', decision_id: '' },
})
const blocked: AlertV1 = {
  ...{ ...attributes, type: 'weir.limit.blocked', subject: 'other' },
  data: { limit: 'minute', size: 1, until: '', decision_id: '' },
}
const choose = (alert: AlertV1) => chooseEndpoints(alert, policy)

test('an endpoint, paused or not, gets the alerts that its `only` selects; without `only` it gets all', () => {
  expect(choose(quota('other', 80))).toEqual(['all', 'days'])
  expect(choose(quota('other', 100))).toEqual(['all', 'full', 'days'])
  expect(choose(quota('acme', 80, 'month'))).toEqual(['all', 'acme'])
  expect(choose(blocked)).toEqual(['all'])
})

test('a test goes to its endpoint alone, whatever its `only`; all others are notified of a disabled one', () => {
  const about = (type: 'weir.endpoint.test' | 'weir.endpoint.disabled', endpoint: string): AlertV1 => ({
    ...{ ...attributes, subject: endpoint },
    ...(type === 'weir.endpoint.test'
      ? { type, data: { endpoint } }
      : { type, data: { endpoint, reason: 'answered 410' } }),
  })
  expect(choose(about('weir.endpoint.test', 'none'))).toEqual(['none'])
  expect(choose(about('weir.endpoint.test', 'gone'))).toEqual([])
  expect(choose(about('weir.endpoint.disabled', 'all'))).toEqual([])
  expect(choose(about('weir.endpoint.disabled', 'full'))).toEqual(['all'])
})
