import type { Limit } from '@weir/core/limits/limit.ts'
import { expect, test } from 'vitest'
import type { Policy, Subject } from '../policy.ts'
import { parsePolicy } from '../reader/parse-policy.ts'
import { unmatchedRoute } from './match-route.ts'
import { becauseOf, createLimitResolver, explainLimits } from './resolve-limits.ts'
import { createUpstreamResolver } from './resolve-upstream.ts'

const policy = parsed(`
version: 1
plans: { free: { limits: [day, ceiling, minute] }, none: { limits: [] } }
limits:
  minute: { algorithm: fixed_window, size: 1, window: 1m }
  day: { algorithm: fixed_window, size: 1, period: day }
  per-ip: { algorithm: fixed_window, size: 1, window: 1m, by: [ip], applies: all }
  ceiling: { algorithm: fixed_window, size: 1, window: 1m, by: [global], applies: all }
routes: [ { match: GET /b, upstream: b } ]
upstreams:
  a: { url: "http://a", hosts: [a.example.com, "[::1]"] }
  b: { url: "http://b", hosts: [] }
  rest: { url: "http://rest" }
subjects: { s: { plan: free }, t: { plan: free }, u: { plan: none } }
`)

function parsed(text: string): Policy {
  const result = parsePolicy(text, 'weir.yaml')
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result.policy
}

function subject(id: string, of = policy): Subject {
  const found = of.subjects.get(id)
  if (found === undefined) throw new Error(`no subject ${id}`)
  return found
}

test("a subject has its plan's limits in the plan's order, then those for all, none twice", () => {
  const resolve = createLimitResolver(policy)
  expect(resolve(subject('s'), unmatchedRoute).map(({ name }) => name)).toEqual(['day', 'ceiling', 'minute', 'per-ip'])
  expect(resolve(subject('u'), unmatchedRoute).map(({ name }) => name)).toEqual(['per-ip', 'ceiling'])
})

test('subjects of one plan get the same array, so that headers are made once a plan', () => {
  const resolve = createLimitResolver(policy)
  expect(resolve(subject('s'), unmatchedRoute)).toBe(resolve(subject('t'), unmatchedRoute))
})

test("a route's limits come between the plan's and those for all, and each in the subject's own version", () => {
  const policy = parsed(`
version: 1
limits:
  minute: { algorithm: fixed_window, size: 1, window: 1m }
  search: { algorithm: token_bucket, size: 1, window: 1s, by: [subject, route] }
  ip: { algorithm: fixed_window, size: 1, window: 1m, by: [ip], applies: all }
plans: { free: { limits: [minute] } }
routes: [ { match: GET /a, limits: [search, minute] }, { match: GET /b }, { match: GET /c, limits: [search, minute] } ]
subjects:
  s: { plan: free }
  t: { plan: free, limits: { search: { size: 9 } } }
  u: { plan: free, limits: { search: { size: 9 } } }
`)
  const resolve = createLimitResolver(policy)
  const [s, t, u] = ['s', 't', 'u'].map((id) => policy.subjects.get(id))
  const [a, b, c] = policy.routes
  if (s === undefined || t === undefined || u === undefined) throw new Error('no subject')
  if (a === undefined || b === undefined || c === undefined) throw new Error('no route')
  const sizes = (limits: readonly Limit[]) => limits.map(({ name, size }) => [name, size])
  expect(sizes(resolve(s, a))).toEqual([
    ['minute', 1],
    ['search', 1],
    ['ip', 1],
  ])
  expect(sizes(resolve(t, a))[1]).toEqual(['search', 9])
  expect(sizes(resolve(t, b))).toEqual([
    ['minute', 1],
    ['ip', 1],
  ])
  expect(resolve(t, a)).toBe(resolve(u, c))
  expect(resolve(s, b)).toBe(resolve(s, unmatchedRoute))
  expect(resolve(t, a)).not.toBe(resolve(s, a))
})

test('more limits than a decision may have are refused even in a policy that no reader has checked', () => {
  const limit = policy.limits.get('day')
  if (limit === undefined) throw new Error('no limit day')
  const limits = Array.from({ length: 17 }, (_, index) => ({ ...limit, name: `l${index}` }))
  const plan = { name: 'wide', limits }
  expect(() => createLimitResolver({ ...policy, plans: new Map([['wide', plan]]) })).toThrow('plan wide has')
})

test.each([
  ['a.example.com', 'a'],
  ['A.Example.com:8080', 'a'],
  ['a.example.com.', 'a'],
  ['[::1]:80', 'a'],
  ['[::1]', 'a'],
  ['b', 'rest'],
  ['x.a.example.com', 'rest'],
  ['', 'rest'],
])('host %j goes to %s', (host, name) => {
  expect(createUpstreamResolver(policy)(host, undefined)?.name).toBe(name)
})

test.each([
  ['api.example.com', 'api'],
  ['x.example.com', 'wild'],
  ['a.b.example.com:443', 'wild'],
  ['x.eu.example.com', 'eu'],
  ['eu.example.com', 'wild'],
  ['example.com', 'rest'],
  ['badexample.com', 'rest'],
  ['.example.com', 'rest'],
  [`${'a.'.repeat(150)}example.com`, 'rest'],
])('Host %j goes to %s, because a name wins over a wildcard and a longer wildcard over a shorter one', (host, name) => {
  const { upstreams } = parsed(`
version: 1
upstreams:
  wild: { url: "http://wild", hosts: ["*.Example.com"] }
  rest: { url: "http://rest", hosts: ["*"] }
  eu: { url: "http://eu", hosts: ["*.eu.example.com"] }
  api: { url: "http://api", hosts: [api.example.com] }
`)
  expect(createUpstreamResolver({ upstreams })(host, undefined)?.name).toBe(name)
})

test("a route's own upstream comes before that of the host", () => {
  expect(createUpstreamResolver(policy)('a.example.com', policy.routes[0])?.name).toBe('b')
})

test('without a catch-all an unknown host has no upstream', () => {
  const upstreams = new Map([...policy.upstreams].filter(([name]) => name !== 'rest'))
  expect(createUpstreamResolver({ upstreams })('other.example.com', undefined)).toBeUndefined()
})

test('a limit that is replaced does not apply where the one that replaces it does', () => {
  const policy = parsed(`
version: 1
limits:
  read: { algorithm: fixed_window, size: 5, window: 1m }
  write: { algorithm: fixed_window, size: 2, window: 1m }
  export: { algorithm: fixed_window, size: 50, window: 1m, replaces: [read, write] }
plans: { free: { limits: [read, write] } }
routes: [ { match: GET /export, limits: [export] } ]
subjects: { s: { plan: free } }
`)
  const [found, exporting] = [policy.subjects.get('s'), policy.routes[0]]
  if (found === undefined || exporting === undefined) throw new Error('not in the policy')
  const resolve = createLimitResolver(policy)
  expect(resolve(found, exporting).map(({ name }) => name)).toEqual(['export'])
  expect(resolve(found, unmatchedRoute).map(({ name }) => name)).toEqual(['read', 'write'])
})

const explained = parsed(`
version: 1
plans: { free: { limits: [minute, ip] } }
limits:
  minute: { algorithm: fixed_window, size: 1, window: 1m }
  search: { algorithm: fixed_window, size: 1, window: 1m }
  ip: { algorithm: fixed_window, size: 1, window: 1m, by: [ip], applies: all }
routes: [{ match: GET /a, limits: [search] }, { match: GET /b, limits: [search, minute] }]
subjects: { s: { plan: free, limits: { search: { size: 9 }, minute: { mode: shadow } } } }
`)
const explainedSubject = subject('s', explained)

test('every limit says why it applies, and whether the subject has its own version', () => {
  const explanation = explainLimits(explained, explainedSubject, explained.routes[0])
  expect(explanation.map(({ limit, because, own }) => [limit.name, limit.size, because, own])).toEqual([
    ['minute', 1, ['plan free'], true],
    ['ip', 1, ['plan free', 'applies: all'], false],
    ['search', 9, ['route GET /a'], true],
  ])
  expect(explainLimits(explained, explainedSubject, undefined).at(-1)?.because).toEqual([
    'route GET /a',
    'route GET /b',
  ])
  expect(explanation.map((one) => becauseOf(one, explainedSubject))).toEqual([
    ['plan free', "s's own settings"],
    ['plan free', 'applies: all'],
    ['route GET /a', "s's own size instead of 1"],
  ])
})

test('the limits that are explained are the limits that decide, in the same order', () => {
  const resolve = createLimitResolver(explained)
  for (const route of [...explained.routes, unmatchedRoute]) {
    expect(explainLimits(explained, explainedSubject, route).map(({ limit }) => limit)).toEqual(
      resolve(explainedSubject, route),
    )
  }
})

const tiers = parsed(`
version: 1
limits:
  search-free: { algorithm: fixed_window, size: 10, period: day, plans: [free] }
  search-premium: { algorithm: fixed_window, size: 1000, period: day, plans: [premium, partner] }
  addresses: { algorithm: fixed_window, size: 5, window: 1m, by: [ip], applies: all, plans: [free] }
plans: { free: { limits: [] }, premium: { limits: [] }, other: { limits: [] }, partner: { limits: [] } }
routes: [{ match: POST /search, limits: [search-free, search-premium] }, { match: GET /b }]
subjects: { f: { plan: free }, p: { plan: premium }, o: { plan: other } }
`)

test('A limit of some plans applies to their subjects alone, where a route names it and where it applies to all', () => {
  const resolve = createLimitResolver(tiers)
  const [search = unmatchedRoute, other = unmatchedRoute] = tiers.routes
  const met = (id: string, route: typeof search) => resolve(subject(id, tiers), route).map(({ name }) => name)
  expect(met('f', search)).toEqual(['search-free', 'addresses'])
  expect(met('p', search)).toEqual(['search-premium'])
  expect(met('o', search)).toEqual([])
  expect(met('f', other)).toEqual(['addresses'])
  expect(met('p', other)).toEqual([])
  const put = { ...subject('f', tiers), plan: tiers.plans.get('premium') ?? subject('o', tiers).plan }
  expect(resolve(put, search).map(({ name }) => name)).toEqual(['search-premium'])
  for (const id of ['f', 'p', 'o']) {
    const explained = explainLimits(tiers, subject(id, tiers), search).map(({ limit }) => limit)
    expect(explained).toEqual(resolve(subject(id, tiers), search))
  }
})

test('Sixteen plans may each have a limit of their own on one route, because a decision meets one of them', () => {
  const names = Array.from({ length: 17 }, (_, at) => `p${at}`)
  const limit = (name: string) => `${name}: { algorithm: fixed_window, size: 1, window: 1m, plans: [${name}] }`
  const policy = parsed(`
version: 1
limits: { ${names.map(limit).join(', ')} }
plans: { ${names.map((name) => `${name}: { limits: [] }`).join(', ')} }
routes: [{ match: GET /a, limits: [${names.join(', ')}] }]
`)
  expect(policy.routes[0]?.limits).toHaveLength(17)
})
