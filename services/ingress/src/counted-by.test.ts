import { DecisionService } from '@weir/decide/decision-service.ts'
import type { AddressForm } from '@weir/decide/record/counted-by.ts'
import { buildDecisionRequest } from '@weir/decide/testing/build-decision-request.ts'
import type { DecisionRequest } from '@weir/decide/types.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { expect, test } from 'vitest'
import { createLivePolicy } from './policy-view.ts'
import { memoryPorts } from './testing/memory-ingress.ts'

const window = 'algorithm: fixed_window, window: 1m'
const policyText = `
version: 1
plans: { free: { limits: [minute] }, named: { limits: [tenant, open] }, otp: { limits: [minute, otp] } }
limits:
  minute: { ${window}, size: 9 }
  tenant: { ${window}, size: 9, by: [subject, header:x-tenant, cookie:sid, route, method, key] }
  open: { ${window}, size: 9, by: [subject, query:region], record: plain }
  otp: { ${window}, size: 1, by: [subject, ip], block: 2m }
subjects: { acme: { plan: free }, globex: { plan: named }, hooli: { plan: otp } }
`

const fromCheck = { entryPoint: 'check', startedAt: 0 } as const

function open(addressForm?: AddressForm) {
  const { log, ...ports } = memoryPorts(policyText)
  const live = createLivePolicy(ports.policy.view.policy, () => false, 412)
  const decisionService = new DecisionService({ ...ports, log, policy: live, addressForm })
  const ask = (id: string, given: Partial<DecisionRequest> = {}) =>
    decisionService.decide(buildDecisionRequest(live.view, id, { ip: '203.0.113.5', ...given }))
  return { ask, log, live, decisionService }
}

const limitsOf = (record: unknown) => (record as { readonly limits: readonly { readonly by?: object }[] }).limits

test('a record of limits that count by the subject alone says nothing more, nor the address', async () => {
  const { ask, log } = open()
  await ask('acme')
  expect(limitsOf(log.records[0])[0]).not.toHaveProperty('by')
  expect(log.records[0]).not.toHaveProperty('ip')
  expect(log.records[0]).not.toHaveProperty('retry_ms')
})

test('values that callers send are recorded by their hash, and as they are where the limit says so', async () => {
  const { ask, log } = open()
  const named = new Map([
    ['header:x-tenant', 'secret'],
    ['query:region', 'eu'],
  ])
  await ask('globex', { named })
  const [tenant, plain] = limitsOf(log.records[0])
  expect(tenant?.by).toEqual({
    // printf %s header.x-tenant=secret | openssl sha256 -binary | basenc --base64url | cut -c1-22
    'header:x-tenant': 'sha256:Y-v6ICTQBadkfTwxs51fOJ',
    'cookie:sid': '',
    route: '*',
    method: 'GET',
    key: 'k',
  })
  expect(plain?.by).toEqual({ 'query:region': 'eu' })
  expect(JSON.stringify(log.records)).not.toContain('secret')
})

test.each<[AddressForm, string, string]>([
  ['full', '203.0.113.5', '203.0.113.5'],
  ['full', '2001:db8:1:2::/64', '2001:db8:1:2::/64'],
  ['prefix', '203.0.113.5', '203.0.113.0/24'],
  ['prefix', '2001:db8:1:2::/64', '2001:db8:1:2::/64'],
  ['hash', '203.0.113.5', 'sha256:c2WIWfqx6Kz6AkzCGZGbr4'],
])('with WEIR_RECORD_ADDRESS=%s the address %s is recorded as %s', async (form, ip, recorded) => {
  const { ask, log } = open(form)
  await ask('hooli', { ip })
  expect(log.records[0]).toMatchObject({ ip: recorded })
  expect(limitsOf(log.records[0]).map(({ by }) => by)).toEqual([undefined, { ip: recorded }])
})

test('with WEIR_RECORD_ADDRESS=off no record has the address, in clear or hashed', async () => {
  const { ask, log } = open('off')
  for (let n = 0; n < 2; n += 1) await ask('hooli')
  expect(log.records).toHaveLength(2)
  expect(JSON.stringify(log.records)).not.toMatch(/203\.0\.113|sha256|"ip"/)
})

test('a refusal says how long to wait, and -1 where waiting does not help', async () => {
  const { ask, log, decisionService } = open()
  for (let n = 0; n < 2; n += 1) await ask('hooli')
  await ask('acme', { cost: 10 })
  await decisionService.rejectUnauthenticated({
    ...fromCheck,
    ip: '',
    route: unmatchedRoute,
    method: 'GET',
    retryAfterMs: 0,
  })
  expect(log.records.map(({ reason, retry_ms: retry }) => [reason, retry])).toEqual([
    ['ok', undefined],
    ['limit', 120_000],
    ['cost_exceeds_limit', -1],
    ['unauthorized', -1],
  ])
})

test('a record names the last change of the policy in force, also one of subjects alone; none where none is known', async () => {
  const { ask, log, live } = open()
  await ask('acme')
  live.moveTo(415)
  await ask('acme')
  const before = live.view
  live.replace(before.policy, 420)
  await ask('acme')
  await ask('acme', { view: before })
  live.replace(before.policy)
  await ask('acme')
  expect(log.records.map(({ policy: offset }) => offset)).toEqual([412, 415, 420, 415, undefined])
})
