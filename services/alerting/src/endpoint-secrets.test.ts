import { requirePolicy } from '@weir/core/policy/require-policy.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, test } from 'vitest'
import { createEndpointSecrets } from './endpoint-secrets.ts'

const policyOf = (endpoints: object) =>
  requirePolicy(JSON.stringify({ version: 1, plans: { free: { limits: [] } }, endpoints }), 'weir.yaml')
const endpoint = (secretEnv: string) => ({ url: 'https://hooks.example.com/', secretEnv })
const secret = `whsec_${'a'.repeat(32)}`

test('an endpoint that comes with a change and has no secret is named, kept waiting, and spoils no other', () => {
  const environment = { OPS_SECRET: secret, BAD_SECRET: 'whsec_short' }
  const log = createLogger('test', 'silent')
  const endpoints = createEndpointSecrets(policyOf({ ops: endpoint('OPS_SECRET') }), environment, log)
  expect(endpoints.problems).toEqual([])
  endpoints.follow(policyOf({ ops: endpoint('OPS_SECRET'), bad: endpoint('BAD_SECRET'), none: endpoint('NO_SECRET') }))
  expect(endpoints.names()).toEqual(['ops', 'bad', 'none'])
  expect(endpoints.get('ops')?.secret).toBe(secret)
  expect([endpoints.get('bad')?.secret, endpoints.get('none')?.secret]).toEqual([undefined, undefined])
  expect(endpoints.problems).toEqual([
    expect.stringContaining('BAD_SECRET (endpoint bad)'),
    expect.stringContaining('NO_SECRET (endpoint none)'),
  ])
  expect(endpoints.problems.join()).not.toContain('whsec_short')
  endpoints.follow(policyOf({}))
  expect([endpoints.names(), endpoints.get('ops'), endpoints.problems]).toEqual([[], undefined, []])
})
