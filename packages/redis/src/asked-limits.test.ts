import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { findAskedLimits } from './asked-limits.ts'

const policy = (identity: string) =>
  requirePolicy(
    `version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 4, window: 1m } }
identity: ${identity}
subjects: { acme: { plan: free } }
`,
    'weir.yaml',
  )

test('the limits of a subject that the policy does not have are those of identity.unknown; without that there are none', () => {
  const find = (identity: string) => findAskedLimits(policy(identity), { subject: 'acmee' })
  expect(find('{ unknown: free }')).toMatchObject({
    kind: 'found',
    asked: { scope: { subject: 'acmee', timeZone: 'UTC' }, limits: [{ limit: { name: 'minute' } }] },
  })
  expect(find('{}')).toMatchObject({ kind: 'unknown', message: expect.stringContaining('did you mean acme?') })
  const own = { subject: 'acmee', isOwn: true }
  expect(findAskedLimits(policy('{}'), own)).toEqual({ kind: 'unknown', message: 'The policy has no subject "acmee"' })
})
