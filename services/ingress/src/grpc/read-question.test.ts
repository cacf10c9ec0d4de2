import { costMax } from '@weir/core/limits/limit-store.ts'
import { requirePolicy } from '@weir/core/policy/require-policy.ts'
import { expect, it } from 'vitest'
import { createLivePolicy } from '../policy-view.ts'
import { readQuestion } from './read-question.ts'

const policy = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 4, window: 1m } }
subjects: { acme: { plan: free } }
`
const { view } = createLivePolicy(requirePolicy(policy, 'weir.yaml'))

const ask = (hitsAddend: number, value?: number) => {
  const entries = [{ key: 'subject', value: 'acme' }]
  const descriptors = [{ entries, limit: null, hitsAddend: value === undefined ? null : { value } }]
  return readQuestion(view, { domain: 'mesh', descriptors, hitsAddend }, 0)
}

it('hits_addend beyond the most that a request may cost is a refusal, because Envoy lets requests through on an error', () => {
  expect([ask(costMax), ask(0, costMax)]).toMatchObject([{ cost: costMax }, { cost: costMax }])
  const above = [ask(costMax + 1), ask(0, costMax + 1), ask(0, 2 ** 64)]
  expect(above.map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused'])
})
