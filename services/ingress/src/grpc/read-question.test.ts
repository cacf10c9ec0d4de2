import { costMax } from '@weir/core/limits/limit-store.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { expect, it } from 'vitest'
import { createLivePolicy } from '../policy-view.ts'
import type { RateLimitRequest } from './messages.ts'
import { readQuestions } from './read-question.ts'

const policy = `
version: 1
plans: { free: { limits: [minute] } }
limits: { minute: { algorithm: fixed_window, size: 4, window: 1m } }
routes: [ { match: "* /v1/any" }, { match: "DESCRIPTOR /domain/key/value" } ]
subjects: { acme: { plan: free } }
`
const { view } = createLivePolicy(requirePolicy(policy, 'weir.yaml'))

/** Of a request whose descriptors are all alike. */
function readQuestion(by: typeof view, request: RateLimitRequest, nowMs: number) {
  const parts = readQuestions(by, request, nowMs)
  if ('kind' in parts || parts[0] === undefined || parts.length !== 1) throw new Error('not one question')
  return parts[0].question
}

const ask = (hitsAddend: number, value?: number, subject = 'acme', by = view) => {
  const entries = [{ key: 'subject', value: subject }]
  const descriptors = [{ entries, limit: null, hitsAddend: value === undefined ? null : { value } }]
  return readQuestion(by, { domain: 'mesh', descriptors, hitsAddend }, 0)
}

it('hits_addend beyond the most that a request may cost is a refusal, because Envoy lets requests through on an error', () => {
  expect([ask(costMax), ask(0, costMax)]).toMatchObject([{ cost: costMax }, { cost: costMax }])
  const above = [ask(costMax + 1), ask(0, costMax + 1), ask(0, 2 ** 64)]
  expect(above.map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused'])
})

it('methods that HTTP does not have are recorded as one, and meet no route for descriptors', () => {
  const asked = (entries: Readonly<Record<string, string>>) => {
    const list = Object.entries({ subject: 'acme', ...entries }).map(([key, value]) => ({ key, value }))
    const descriptors = [{ entries: list, limit: null, hitsAddend: null }]
    const question = readQuestion(view, { domain: 'mesh', descriptors, hitsAddend: 0 }, 0)
    return 'method' in question ? [question.method, question.route.template] : []
  }
  for (const method of ['QZTKAB', 'QZTKAC', 'G ET', 'ŉ', 'x'.repeat(900), 'OTHER']) {
    expect(asked({ method, path: '/v1/any' })).toEqual(['OTHER', '* /v1/any'])
  }
  expect(asked({ method: 'DESCRIPTOR', path: '/domain/key/value' })).toEqual(['OTHER', '*'])
  expect(asked({ method: 'get', path: '/v1/any' })).toEqual(['GET', '* /v1/any'])
  expect(asked({})).toEqual(['', '*'])
})

it('a subject that the policy does not have is on the plan of identity.unknown; without that it is refused', () => {
  const { view: open } = createLivePolicy(requirePolicy(`${policy}identity: { unknown: free }`, 'weir.yaml'))
  expect(ask(1, undefined, 'not-listed', open)).toMatchObject({ subject: { id: 'not-listed', plan: { name: 'free' } } })
  expect(ask(1, undefined, 'ip:192.0.2.1', open).kind).toBe('unauthenticated')
  expect(ask(1, undefined, 'not-listed').kind).toBe('unauthenticated')
})

it('the path that a gateway names has the parameters that limits count by, beside the attributes of each descriptor', () => {
  const counted = `
version: 1
limits:
  per-user: { algorithm: fixed_window, size: 4, window: 1m, by: [path:user] }
  per-tag: { algorithm: fixed_window, size: 4, window: 1m, by: [attribute:tag], applies: all }
plans: { free: { limits: [per-user] } }
routes: [ { match: "GET /v1/users/:user" } ]
subjects: { acme: { plan: free } }
`
  const by = createLivePolicy(requirePolicy(counted, 'weir.yaml')).view
  const descriptorOf = (entries: Readonly<Record<string, string>>) => ({
    entries: Object.entries(entries).map(([key, value]) => ({ key, value })),
    limit: null,
    hitsAddend: null,
  })
  const request = { subject: 'acme', method: 'GET', path: '/v1/users/%61nn?x=1', tag: 'a' }
  const descriptors = [descriptorOf(request), descriptorOf({ tag: 'b' })]
  const asked = readQuestion(by, { domain: 'mesh', descriptors, hitsAddend: 0 }, 0)
  if (asked.kind !== 'named') throw new Error('not decided')
  const values = { subject: 'acme', keyId: '', ip: '', route: '', method: '', named: asked.named }
  expect(asked.limits?.map((limit) => limitKey(limit, values))).toEqual([
    'weir:1:{_global}:per-user:path.user=ann',
    'weir:1:{_global}:per-tag:attribute.tag=a',
    'weir:1:{_global}:per-tag:attribute.tag=b',
  ])
})
