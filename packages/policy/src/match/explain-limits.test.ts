import { expect, test } from 'vitest'
import { requirePolicy } from '../reader/require-policy.ts'
import { explainLimits } from './explain-limits.ts'
import { unmatchedRoute } from './match-route.ts'
import { createLimitResolver } from './resolve-limits.ts'

const policy = requirePolicy(
  `
version: 1
plans: { free: { limits: [minute, ip] } }
limits:
  minute: { algorithm: fixed_window, size: 1, window: 1m }
  search: { algorithm: fixed_window, size: 1, window: 1m }
  ip: { algorithm: fixed_window, size: 1, window: 1m, by: [ip], applies: all }
routes: [{ match: GET /a, limits: [search] }, { match: GET /b, limits: [search, minute] }]
subjects: { s: { plan: free, limits: { search: { size: 9 } } } }
`,
  'weir.yaml',
)
const subject = policy.subjects.get('s')
if (subject === undefined) throw new Error('no subject s')

test('every limit says why it applies, and whether the subject has its own version', () => {
  const told = explainLimits(policy, subject, policy.routes[0])
  expect(told.map(({ limit, because, own }) => [limit.name, limit.size, because, own])).toEqual([
    ['minute', 1, ['plan free'], false],
    ['ip', 1, ['plan free', 'applies: all'], false],
    ['search', 9, ['route GET /a'], true],
  ])
  expect(explainLimits(policy, subject, undefined).at(-1)?.because).toEqual(['route GET /a', 'route GET /b'])
})

test('what is explained is what decides, in its order', () => {
  const resolve = createLimitResolver(policy)
  for (const route of [...policy.routes, unmatchedRoute]) {
    expect(explainLimits(policy, subject, route).map(({ limit }) => limit)).toEqual(resolve(subject, route))
  }
})
