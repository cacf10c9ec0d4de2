import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import type { PolicyFeedStatus } from './policy-feed.ts'
import { policyReadiness } from './service-policy.ts'

const policy = requirePolicy('{ version: 1, plans: { free: { limits: [] } } }', 'weir.yaml')
const healthy: PolicyFeedStatus = { source: 'topic', waitingFor: '', ageMs: 2_000, refused: undefined }
const never = { policyMaxAgeS: 0, onStalePolicy: 'refuse' } as const
const minute = (onStalePolicy: 'serve' | 'refuse') => ({ policyMaxAgeS: 60, onStalePolicy })

test('a followed policy has nothing to say', () => {
  expect(policyReadiness({ policy, status: healthy }, minute('refuse'))).toBeUndefined()
})

test('without a policy a service is not ready, and says what it waits for', () => {
  const away = { ...healthy, source: 'none' as const, waitingFor: 'Kafka at k:9092: refused', ageMs: Infinity }
  expect(policyReadiness({ policy: undefined, status: away }, never)).toContain('waiting for Kafka at k:9092: refused')
  const empty = { ...healthy, source: 'none' as const }
  expect(policyReadiness({ policy: undefined, status: empty }, never)).toContain('the topic holds none')
  expect(policyReadiness({ policy: undefined, status: empty }, never, 'weir.yaml')).toContain(
    `WEIR_POLICY_FILE (${process.cwd()}/weir.yaml)`,
  )
})

test('a policy that Kafka has not confirmed for too long is a warning where it is served, else makes the service unready', () => {
  const status = { ...healthy, waitingFor: 'Kafka', ageMs: 61_000 }
  expect(policyReadiness({ policy, status }, minute('serve'))).toEqual({
    warning: 'not confirmed by Kafka for 61 s, longer than WEIR_POLICY_MAX_AGE_S; waiting for Kafka',
  })
  expect(policyReadiness({ policy, status }, minute('refuse'))).toContain('requests are refused')
  expect(policyReadiness({ policy, status: { ...status, ageMs: Infinity } }, minute('refuse'))).toContain(
    'since the start',
  )
})

test('a policy that is not followed, or not in force in all its parts, is a warning', () => {
  const seed = { ...healthy, source: 'seed' as const, waitingFor: 'topic t, which does not exist' }
  expect(policyReadiness({ policy, status: seed }, never)).toEqual({
    warning: 'waiting for topic t, which does not exist; the one in force is that of the file',
  })
  expect(policyReadiness({ policy, status: { ...healthy, refused: 'plan/free is not' } }, never)).toEqual({
    warning: 'plan/free is not',
  })
})
