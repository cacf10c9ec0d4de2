import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { confirmTarget, findTarget } from '@weir/policy/contact-targets.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { chooseTargets } from './queue-alerts.ts'

const url = 'https://hooks.example.com/'
const limitOf = { algorithm: 'fixed_window', size: 10, period: 'day' }
const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    plans: { free: { limits: ['day', 'month', 'minute', 'own'] } },
    limits: {
      ...Object.fromEntries(['day', 'month', 'minute', 'own'].map((name) => [name, limitOf])),
      tried: { ...limitOf, mode: 'shadow' },
      shared: { algorithm: 'fixed_window', size: 10, window: '1m', by: ['global'], applies: 'all' },
    },
    endpoints: {
      all: { url, secretEnv: 'S' },
      full: { url, secretEnv: 'S', only: { types: ['weir.quota.reached'], percent: '100%' } },
      acme: { type: 'slack', urlEnv: 'U', only: { subjects: ['acme'] } },
      days: { type: 'email', to: ['ops@example.com'], only: { limits: ['day'] }, paused: true },
      none: { url, secretEnv: 'S', only: { types: [] } },
      customers: { type: 'subject', only: { percent: '100%' } },
    },
    subjects: {
      carl: { plan: 'free', contact: { email: ['carl@a.example', 'ops@a.example'], webhook: { url, secretEnv: 'C' } } },
      full: { plan: 'free', contact: { email: ['full@a.example'] } },
      plain: { plan: 'free' },
      own: { plan: 'free', ownAlerts: true },
      trier: { plan: 'free', limits: { own: { mode: 'shadow' } }, contact: { email: ['trier@a.example'] } },
    },
    ownAlerts: { own: { email: ['own@a.example'], pending: [{ email: 'new@a.example', at: '2026-11-21T12:00:00Z' }] } },
  }),
  'weir.yaml',
)

const attributes = { id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', time: '2026-11-21T12:00:00Z' }
const quota = (subject: string, percent: number, limit = 'day'): AlertOf<'weir.quota.reached'> => ({
  ...attributes,
  type: 'weir.quota.reached',
  subject,
  data: { limit, size: 10, used: 8, percent, period_start: '', period_end: '', decision_id: '' },
})
const blocked: AlertOf<'weir.limit.blocked'> = {
  ...attributes,
  type: 'weir.limit.blocked',
  subject: 'other',
  data: { limit: 'minute', size: 1, until: '', decision_id: '' },
}
const choose = (alert: AlertV1) => chooseTargets(alert, policy)

test('an endpoint, paused or not, gets the alerts that its `only` selects; without `only` it gets all', () => {
  expect(choose(quota('other', 80))).toEqual(['all', 'days'])
  expect(choose(quota('other', 100))).toEqual(['all', 'full', 'days'])
  expect(choose(quota('acme', 80, 'month'))).toEqual(['all', 'acme'])
  expect(choose(blocked)).toEqual(['all'])
})

test('chats and PagerDuty get the end of what they get; webhooks with a list only what it names, and mail only if it names ends', () => {
  const [reached, both] = [{ types: ['weir.quota.reached'] }, { types: ['weir.quota.reached', 'weir.quota.resolved'] }]
  const kinds = {
    slack: { type: 'slack', urlEnv: 'U' },
    teams: { type: 'teams', urlEnv: 'U' },
    pagerduty: { type: 'pagerduty', secretEnv: 'S' },
    webhook: { url, secretEnv: 'S' },
    email: { type: 'email', to: ['ops@example.com'] },
    subject: { type: 'subject' },
  }
  const choices = { any: {}, reached, both, blocks: { types: ['weir.limit.blocked'] }, high: { percent: '100%' } }
  const endpoints = Object.fromEntries(
    Object.entries(kinds).flatMap(([kind, of]) =>
      Object.entries(choices).map(([choice, only]) => [`${kind}-${choice}`, { ...of, only }]),
    ),
  )
  const subjects = { acme: { plan: 'free', contact: { email: ['acme@a.example'] } } }
  const limits = { day: limitOf }
  const own = requirePolicy(
    JSON.stringify({ version: 1, limits, plans: { free: { limits: ['day'] } }, subjects, endpoints }),
    'weir.yaml',
  )
  const alert = quota('acme', 80)
  const data = { ...alert.data, resolves: alert.id, reached_at: alert.time, reason: 'period_ended' }
  const chosen = chooseTargets({ ...alert, type: 'weir.quota.resolved', data }, own)
  expect(chosen.map((name) => name.replace(/\/email-.*/, ''))).toEqual([
    ...['slack', 'teams', 'pagerduty'].flatMap((kind) => [`${kind}-any`, `${kind}-reached`, `${kind}-both`]),
    'webhook-any',
    'webhook-both',
    'email-both',
    'subject-both',
  ])
})

test('a test goes to its endpoint alone, whatever its `only`; all others are notified of a disabled one', () => {
  const about = (type: 'weir.endpoint.test' | 'weir.endpoint.disabled', endpoint: string): AlertV1 => ({
    ...attributes,
    subject: endpoint,
    ...(type === 'weir.endpoint.test'
      ? { type, data: { endpoint } }
      : { type, data: { endpoint, reason: 'answered 410' } }),
  })
  expect(choose(about('weir.endpoint.test', 'none'))).toEqual(['none'])
  expect(choose(about('weir.endpoint.test', 'gone'))).toEqual([])
  expect(choose(about('weir.endpoint.disabled', 'all'))).toEqual([])
  expect(choose(about('weir.endpoint.disabled', 'full'))).toEqual(['all'])
})

test('an endpoint of type subject is the addresses of the contact of the subject that the alert is about, and of no other', () => {
  const ofContact = choose(quota('carl', 100)).filter((name) => name.startsWith('customers'))
  expect(ofContact).toEqual([
    expect.stringMatching(/^customers\/email-[0-9a-f]{12}$/),
    expect.stringMatching(/^customers\/email-[0-9a-f]{12}$/),
    expect.stringMatching(/^customers\/webhook-[0-9a-f]{12}$/),
  ])
  expect(new Set(ofContact).size).toBe(3)
  expect(choose(quota('carl', 80))).toEqual(['all', 'days'])
  for (const subject of ['plain', 'nobody', '_all'])
    expect(choose(quota(subject, 100))).toEqual(['all', 'full', 'days'])
  const found = ofContact.map((name) => findTarget(policy, name, 'carl'))
  expect(found).toMatchObject([
    { type: 'email', to: ['carl@a.example'] },
    { type: 'email', to: ['ops@a.example'] },
    { type: 'webhook', url, secretEnv: 'C', allowPrivate: false },
  ])
  for (const name of [...ofContact, 'customers', 'all/x']) expect(findTarget(policy, name, 'full')).toBeUndefined()
})

test('an alert about a disabled endpoint is sent to no contact, whatever the subjects are called', () => {
  const data = { endpoint: 'customers/webhook-0', reason: 'answered 410' }
  const alert: AlertV1 = { ...attributes, type: 'weir.endpoint.disabled', subject: 'carl', data }
  expect(choose(alert)).toEqual(['all'])
  const test: AlertV1 = { ...attributes, type: 'weir.endpoint.test', subject: 'full', data: { endpoint: 'customers' } }
  expect(choose(test)).toEqual([expect.stringMatching(/^customers\/email-/)])
})

test('a contact learns nothing of a limit in shadow, nor what others used of a limit that they share', () => {
  const told = (alert: AlertV1) => choose(alert).some((name) => name.startsWith('customers/'))
  const block = (limit: string): AlertV1 => ({ ...blocked, subject: 'full', data: { ...blocked.data, limit } })
  expect(['day', 'tried', 'shared', 'gone'].map((limit) => told(quota('full', 100, limit)))).toEqual([
    true,
    false,
    false,
    false,
  ])
  expect([told(quota('trier', 100, 'own')), told(quota('full', 100, 'own'))]).toEqual([false, true])
  expect(['minute', 'tried', 'shared'].map((limit) => told(block(limit)))).toEqual([true, false, true])
})

test('an address that a customer has added gets alerts once it is confirmed; before, nothing but its link', () => {
  const names = choose(quota('own', 100)).filter((name) => name.startsWith('customers'))
  const addresses = names.map((name) => findTarget(policy, name, 'own'))
  expect(addresses).toMatchObject([{ type: 'email', to: ['own@a.example'] }])
  const customers = policy.endpoints.get('customers')
  if (customers === undefined) throw new Error('no endpoint')
  const added = { email: 'new@a.example', atMs: Date.parse('2026-11-21T12:00:00Z'), isRemoved: false }
  const link = confirmTarget(customers, added)
  const test: AlertV1 = { ...attributes, type: 'weir.endpoint.test', subject: 'own', data: { endpoint: link } }
  expect(choose(test)).toEqual([link])
  expect(findTarget(policy, link, 'own')).toMatchObject({ to: ['new@a.example'] })
  expect(findTarget(policy, link, 'plain')).toBeUndefined()
  expect(findTarget(policy, confirmTarget(customers, { ...added, atMs: added.atMs + 1 }), 'own')).toBeUndefined()
})
