import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import { giveUpAfterMs } from '@weir/contracts/delivery.v1.ts'
import { targetsOf } from '@weir/policy/contact-targets.ts'
import type { Contact, Endpoint, EndpointOf } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { noCounts } from '../metrics.ts'
import type { DeliveryJob } from '../types.ts'
import type { AttemptResult } from './channels/channel.ts'
import { createDeliverer } from './deliver-alert.ts'
import { EndpointLimiter } from './endpoint-limiter.ts'

const startMs = Date.parse('2026-11-21T12:00:00Z')
const endpoint: EndpointOf<'webhook'> = {
  name: 'ops',
  only: {},
  isPaused: false,
  type: 'webhook',
  url: 'https://ops.example.com/',
  secretEnv: 'OPS',
  allowPrivate: false,
}
const policy = requirePolicy(
  JSON.stringify({
    version: 1,
    limits: {
      minute: { algorithm: 'fixed_window', size: 1, window: '1m' },
      hidden: { algorithm: 'fixed_window', size: 1, window: '1m', mode: 'shadow' },
    },
    plans: { free: { limits: ['minute', 'hidden'] } },
  }),
  'weir.yaml',
)
const customers: EndpointOf<'subject'> = { name: 'customers', type: 'subject', only: {}, isPaused: false }
const acmes: Contact = { webhook: { url: 'https://acme.example.com/', secretEnv: 'ACME', allowPrivate: false } }
const attributes = { id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', subject: 'acme', time: '2026-11-21T12:00:00Z' }
const alert: AlertOf<'weir.limit.blocked'> = {
  ...attributes,
  type: 'weir.limit.blocked',
  data: { limit: 'minute', size: 1, until: '2026-11-21T13:00:00Z', decision_id: attributes.id },
}
const job: DeliveryJob = {
  alert,
  endpoint: 'ops',
  requestedMs: 0,
  attempts: 0,
  dueMs: startMs,
  giveUpMs: startMs + giveUpAfterMs,
}

function open(answers: readonly AttemptResult[], reasonNot?: string, isPaused = false) {
  let nowMs = startMs
  const left = [...answers]
  const rows: DeliveryV1[] = []
  const disabled: string[] = []
  const enabled: string[] = []
  const counters = noCounts()
  const deliver = createDeliverer({
    policyInForce: () => ({
      endpoints: new Map<string, Endpoint>([
        ['ops', { ...endpoint, isPaused }],
        ['customers', customers],
      ]),
      contacts: new Map([['acme', acmes]]),
      unsubscribed: new Map(),
      ownAlerts: new Map(),
      limits: policy.limits,
      subjects: policy.subjects,
    }),
    limiter: new EndpointLimiter(),
    send: async () => {
      nowMs += 40
      const answer = left.shift()
      if (answer === undefined) throw new Error('sent too often')
      return answer
    },
    record: async (more) => void rows.push(...more),
    disabled: {
      reasonFor: async () => reasonNot,
      disable: async ({ name }, reason) => void disabled.push(`${name}: ${reason}`),
      enable: async ({ name }) => void enabled.push(name),
    },
    clock: { nowMs: () => nowMs },
    random: () => 0,
    counters,
  })
  const moveTo = (ms: number) => {
    nowMs = ms
  }
  return { deliver, rows, disabled, enabled, counters, moveTo, left }
}

const good: AttemptResult = { status: 204, answer: '' }
const bad: AttemptResult = { status: 500, error: 'answered 500', answer: 'oops' }

test('an alert that an endpoint accepts is recorded once, and its job ends', async () => {
  const { deliver, rows, counters } = open([good])
  expect(await deliver(job)).toEqual({ kind: 'over' })
  expect(rows).toMatchObject([{ outcome: 'delivered', attempt: 1, status: 204, ms: 40, error: '', next_try: null }])
  const { results, attemptSeconds, delaySeconds } = counters.deliveries.webhook
  expect(results).toEqual({ delivered: 1, failed: 0, given_up: 0, dropped: 0 })
  expect([attemptSeconds.sum, delaySeconds.sum]).toEqual([0.04, 0.04])
})

test('a failed attempt is recorded with the time of the next, and the job waits until then even if it runs too early', async () => {
  const { deliver, rows, moveTo, left } = open([bad, good])
  const after = await deliver(job)
  const dueMs = startMs + 40 + 5_000
  const later = { ...job, attempts: 1, dueMs }
  expect(after).toEqual({ kind: 'later', job: later, atMs: dueMs })
  expect(rows).toMatchObject([{ outcome: 'failed', attempt: 1, next_try: '2026-11-21 12:00:05.040', answer: 'oops' }])
  expect(await deliver(later)).toEqual({ kind: 'later', job: later, atMs: dueMs })
  expect(left).toHaveLength(1)
  moveTo(dueMs)
  expect(await deliver(later)).toEqual({ kind: 'over' })
  expect(rows.at(-1)).toMatchObject({ outcome: 'delivered', attempt: 2 })
})

test('an endpoint that asks for a longer pause gets it', async () => {
  const { deliver } = open([{ status: 429, error: 'answered 429', retryAfterMs: 600_000, answer: '' }])
  expect(await deliver(job)).toMatchObject({ kind: 'later', atMs: startMs + 40 + 600_000 })
})

test('an alert is given up after ten attempts, and after four days', async () => {
  const { deliver, rows, counters, moveTo } = open([bad])
  expect(await deliver({ ...job, attempts: 9 })).toEqual({ kind: 'given_up', reason: 'ops: answered 500' })
  moveTo(startMs + giveUpAfterMs + 1)
  expect(await deliver({ ...job, attempts: 1 })).toMatchObject({ kind: 'given_up' })
  expect(rows).toMatchObject([
    { outcome: 'given_up', attempt: 10, next_try: null },
    { outcome: 'given_up', attempt: 1, error: 'not retried: the retry period has ended' },
  ])
  expect(counters.deliveries.webhook.results.given_up).toBe(2)
})

test('an alert that its endpoint will never accept is given up with its first attempt, and the endpoint stays enabled', async () => {
  const { deliver, rows, disabled } = open([{ status: 400, error: 'answered 400', verdict: 'final', answer: '' }])
  expect(await deliver(job)).toEqual({ kind: 'given_up', reason: 'ops: answered 400' })
  expect(rows).toMatchObject([{ outcome: 'given_up', attempt: 1, status: 400, next_try: null }])
  expect(disabled).toEqual([])
})

test('an endpoint that answers 410 is disabled, and later alerts for it are dropped with the reason', async () => {
  const { deliver, rows, disabled } = open([{ status: 410, error: 'answered 410', verdict: 'gone', answer: '' }])
  expect(await deliver(job)).toMatchObject({ kind: 'given_up' })
  expect(disabled).toEqual(['ops: answered 410'])
  const after = open([], 'disabled since today: answered 410')
  expect(await after.deliver(job)).toEqual({ kind: 'over' })
  expect(after.rows).toMatchObject([{ outcome: 'dropped', attempt: 0, error: 'disabled since today: answered 410' }])
  expect(rows).toMatchObject([{ outcome: 'given_up', status: 410 }])
})

test('an alert for an endpoint that is no longer in the policy is dropped', async () => {
  const { deliver, rows, moveTo } = open([])
  const gone = { ...job, endpoint: 'gone' }
  // Another process may have read of it before this one.
  expect(await deliver(gone)).toEqual({ kind: 'later', job: gone, atMs: startMs + 5_000 })
  moveTo(startMs + 120_000)
  expect(await deliver(gone)).toEqual({ kind: 'over' })
  expect(rows).toMatchObject([{ outcome: 'dropped', endpoint: 'gone' }])
})

test('a test is sent to a disabled endpoint, and enables it if the endpoint accepts it', async () => {
  const test: AlertOf<'weir.endpoint.test'> = { ...attributes, type: 'weir.endpoint.test', data: { endpoint: 'ops' } }
  const failing = open([bad], 'disabled since today')
  expect(await failing.deliver({ ...job, alert: test })).toMatchObject({ kind: 'later' })
  expect(failing.enabled).toEqual([])
  const working = open([good], 'disabled since today')
  expect(await working.deliver({ ...job, alert: test })).toEqual({ kind: 'over' })
  expect(working.enabled).toEqual(['ops'])
})

test('an alert for a paused endpoint waits, and is given up in its time', async () => {
  const { deliver, rows, moveTo } = open([], undefined, true)
  expect(await deliver(job)).toEqual({ kind: 'later', job, atMs: startMs + 60_000 })
  expect(rows).toEqual([])
  moveTo(startMs + giveUpAfterMs + 1)
  expect(await deliver(job)).toMatchObject({ kind: 'given_up' })
})

test('the address of a contact that is removed before its delivery gets nothing; one that answers 410 is named with its subject', async () => {
  const { deliver, rows, disabled, moveTo } = open([
    { status: 410, error: 'answered 410', verdict: 'gone', answer: '' },
  ])
  const known = {
    contacts: new Map([['acme', acmes]]),
    unsubscribed: new Map(),
    ownAlerts: new Map(),
    subjects: new Map(),
  }
  const [target] = targetsOf(customers, known, 'acme')
  const toContact = { ...job, endpoint: target?.name ?? '' }
  moveTo(startMs + 120_000)
  expect(await deliver({ ...toContact, endpoint: 'customers/webhook-000000000000' })).toEqual({ kind: 'over' })
  expect(rows).toMatchObject([
    { outcome: 'dropped', error: "the subject's contact has no such address that gets this alert any more" },
  ])
  const hidden = { ...alert, data: { ...alert.data, limit: 'hidden' } }
  expect(await deliver({ ...toContact, alert: hidden })).toEqual({ kind: 'over' })
  expect(rows.map(({ outcome }) => outcome)).toEqual(['dropped', 'dropped'])
  expect(await deliver(toContact)).toMatchObject({ kind: 'given_up' })
  expect(disabled).toEqual([`${target?.name}: answered 410, contact of acme`])
})
