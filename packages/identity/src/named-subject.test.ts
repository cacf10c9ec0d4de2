import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { describe, expect, test } from 'vitest'
import { namedSubject } from './named-subject.ts'

const policy = requirePolicy(
  `version: 1
plans: { pool: { limits: [month] }, free: { limits: [burst] } }
limits:
  month: { algorithm: fixed_window, size: 9, period: month }
  burst: { algorithm: token_bucket, size: 9, window: 1m }
subjects: { acme: { plan: pool }, red: { plan: free, parent: acme } }
`,
  'weir.yaml',
)
const named = (id: unknown, parent?: unknown) => namedSubject(policy, { id, planName: 'free', plan: undefined, parent })

describe('a subject that a token names', () => {
  test('is below the parent that is named along with it, if the policy has that and not the subject', () => {
    expect(named('u-1', 'acme')).toMatchObject({ id: 'u-1', parent: { id: 'acme' } })
    expect(named('u-1', 'gone')?.parent).toBeUndefined()
    expect(named('red', 'u-1')).toMatchObject({ id: 'red', parent: { id: 'acme' } })
  })

  test.each([['red'], [['acme']], [7], [null]])('is refused below %j, where a limit would be missed', (parent) => {
    expect(named('u-1', parent)).toBeUndefined()
  })
})
