import { systemClock } from '@weir/core/clock.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { fingerprint } from '@weir/runtime/admin-token.ts'
import { expect, test } from 'vitest'
import { createLivePolicy } from '../policy-view.ts'
import { createCallAuthorizer } from './rate-limit-service.ts'

test('an admin token that was replaced authorizes no call from then on, even where it was the last to be sent', () => {
  const policy = createLivePolicy(requirePolicy('{ "version": 1, "plans": { "free": { "limits": [] } } }', 'weir.yaml'))
  let root = ''
  const codeOf = createCallAuthorizer({ policy, clock: systemClock }, () => root)
  const codes = () => ['first', 'next'].map((token) => codeOf(`Bearer ${token}`)?.code)
  expect(codes()).toEqual([16, 16])
  root = fingerprint('first')
  expect([codeOf('Bearer next')?.code, codeOf('Bearer first')?.code]).toEqual([16, undefined])
  root = fingerprint('next')
  expect(codes()).toEqual([16, undefined])
})
