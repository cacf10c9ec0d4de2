import { readFileSync } from 'node:fs'
import type { Limit } from '@weir/core/limits/limit.ts'
import { expect, test } from 'vitest'
import { defaultIdentity, noOwnLimits, noRouteLimits, type Policy } from '../policy.ts'
import { parsePolicy } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

const hash = '0123456789abcdef'.repeat(4)

function parsed(text: string): Policy {
  const result = parsePolicy(text, 'weir.yaml')
  if (result.kind === 'problems') throw new Error(result.problems.map(formatProblem).join('\n'))
  return result.policy
}

const shipped = readFileSync(new URL('../../../../weir.yaml', import.meta.url), 'utf8')

test('the shipped policy is valid and has the plans, ceilings and demo subjects it promises', () => {
  const policy = parsed(shipped)
  const sizes = [...policy.plans.values()].map(({ name, limits }) => [name, ...limits.map(({ size }) => size)])
  expect(sizes).toEqual([
    ['free', 100, 5000],
    ['starter', 3000],
    ['top', 20_000],
    ['trial', 20],
  ])
  expect(policy.limitsForAll.map(({ name, size, by }) => ({ name, size, by }))).toEqual([
    { name: 'per-ip', size: 50_000, by: [{ kind: 'ip' }] },
  ])
  expect(policy.subjects.get('demo')?.plan.name).toBe('free')
  expect(policy.subjects.get('demo-small')?.plan.limits[0]?.thresholds).toEqual([{ percent: 80 }, { percent: 100 }])
  expect(policy.keys.size).toBe(0)
  expect(policy.routes).toEqual([
    {
      method: 'POST',
      path: '/v1/search',
      template: 'POST /v1/search',
      cost: 5,
      costFrom: undefined,
      upstream: 'demo',
      limits: [],
    },
  ])
  expect(policy.endpoints.get('demo')).toMatchObject({ secretEnv: 'WEIR_DEMO_WEBHOOK_SECRET' })
})

test('what is left out has its documented default', () => {
  const policy = parsed(`
version: 1
plans: { free: { limits: [m] } }
limits: { m: { algorithm: fixed_window, size: 5, window: 1500ms } }
routes: [ { match: GET /a } ]
upstreams: { a: { url: "HTTP://A:80/" } }
subjects: { acme: { plan: free, keys: [ { sha256: ${hash.toUpperCase()} } ] } }
endpoints: { ops: { url: "https://ops.example.com/hook?a=1", secretEnv: OPS } }
`)
  const limit = {
    name: 'm',
    algorithm: 'fixed_window',
    size: 5,
    capacity: 5,
    span: { kind: 'window', ms: 1500 },
    by: [{ kind: 'subject' }],
    applies: 'plan',
    mode: 'enforce',
    blockMs: 0,
    onExceed: { kind: 'deny' },
    lease: 0,
    onUnavailable: 'local',
    thresholds: [],
    cooldownMs: 0,
  }
  const plan = { name: 'free', limits: [limit] }
  const subject = { id: 'acme', plan, timeZone: 'UTC', anchor: 1, ownLimits: noOwnLimits }
  expect(policy).toEqual({
    plans: new Map([['free', { name: 'free', limits: [limit] }]]),
    prices: new Map(),
    rateCards: new Map(),
    limits: new Map([['m', limit]]),
    limitsForAll: [],
    routes: [
      { method: 'GET', path: '/a', template: 'GET /a', cost: 1, costFrom: undefined, upstream: undefined, limits: [] },
    ],
    refusals: new Map(),
    meters: new Map(),
    upstreams: new Map([
      ['a', { name: 'a', url: 'http://a', hosts: ['*'], timeoutMs: 30_000, keepInPath: [], preserveHost: false }],
    ]),
    subjects: new Map([['acme', subject]]),
    keys: new Map([[hash, { id: hash.slice(0, 12), sha256: hash, subject, expiresAtMs: undefined }]]),
    endpoints: new Map([
      [
        'ops',
        {
          name: 'ops',
          type: 'webhook',
          only: {},
          isPaused: false,
          url: 'https://ops.example.com/hook?a=1',
          secretEnv: 'OPS',
          allowPrivate: false,
        },
      ],
    ]),
    watches: new Map(),
    silences: new Map(),
    blocks: new Map(),
    identity: defaultIdentity,
    tokens: new Map(),
    portals: new Map(),
    contacts: new Map(),
    unsubscribed: new Map(),
    ownAlerts: new Map(),
  })
})

test('a watch has what it says, and else the defaults', () => {
  const { watches } = parsed(`
version: 1
watches:
  a: { alert: weir.denied_rate.high }
  b: { alert: weir.allowed.dropped, per: all, window: 1h, factor: 3, least: 1000, cooldown: 1d }
`)
  const said = [...watches.values()].map((of) => [of.alert, of.per, of.windowMs, of.factor, of.least, of.cooldownMs])
  expect(said).toEqual([
    ['weir.denied_rate.high', 'subject', 300_000, 5, 100, 3_600_000],
    ['weir.allowed.dropped', 'all', 3_600_000, 3, 1_000, 86_400_000],
  ])
})

test('a route says for how long and up to which cost its decisions can be settled, and which answers give back what was charged', () => {
  const { routes } = parsed(
    '{ version: 1, routes: [ { match: GET /a, settle: 15m, settleMax: 900, refundOn: [502, 404] }, { match: GET /b } ] }',
  )
  expect(routes[0]).toMatchObject({ settleMs: 900_000, settleMax: 900, refundOn: [502, 404] })
  expect(Object.keys(routes[1] ?? {})).not.toContain('settleMs')
})

test.each([
  ['minute', []],
  ['hour', []],
  ['day', [80, 100]],
  ['week', [80, 100]],
  ['month', [80, 100]],
])('a quota of a %s has the thresholds %j unless it says otherwise', (period, thresholds) => {
  const limit = (more: string) =>
    parsed(`{ version: 1, limits: { q: { algorithm: fixed_window, size: 5, period: ${period}${more} } } }`).limits.get(
      'q',
    )
  expect(limit('')?.thresholds).toEqual(thresholds.map((percent) => ({ percent })))
  expect(limit(', thresholds: [1%, 3, 50%, 4]')?.thresholds).toEqual([
    { percent: 1 },
    { units: 3 },
    { percent: 50 },
    { units: 4 },
  ])
  expect(limit(', thresholds: []')?.thresholds).toEqual([])
})

test('a limit with a window alerts with a cooldown', () => {
  const { limits } = parsed(
    '{ version: 1, limits: { m: { algorithm: sliding_log, size: 9, window: 1m, thresholds: [90%], cooldown: 2h } } }',
  )
  expect(limits.get('m')).toMatchObject({ thresholds: [{ percent: 90 }], cooldownMs: 7_200_000 })
})

test('every key that this version has is taken as written', () => {
  const policy = parsed(`
version: 1
limits:
  a: { algorithm: fixed_window, size: 1, window: 7d, by: [subject, key, ip, route, method, global], mode: enforce }
  b: { algorithm: fixed_window, size: 1e3, period: month, by: [key], applies: all, onUnavailable: deny, lease: 20 }
  c: { algorithm: sliding_window, size: 9, window: 1d, by: [header:X-Tenant, query:Q, attribute:A, path:a, 'claim:https://a/b', cookie:Sid, 'body:/a/0/b~1c'], mode: shadow }
  d: { algorithm: sliding_log, size: 10000, window: 366d, block: 31d, onUnavailable: local }
  e: { algorithm: token_bucket, size: 7, window: 1d, burst: 2562, block: 1s }
  f: { algorithm: token_bucket, size: 90000000, window: 1s }
plans: { p: { limits: [a] } }
routes: [{ match: "GET /:a" }]
subjects:
  acme@example.com:
    plan: p
    timeZone: Asia/Kathmandu
    anchor: 31
    keys: [ { sha256: ${hash}, id: first }, { sha256: ${'9'.repeat(64)} } ]
`)
  expect(
    policy.limits
      .get('a')
      ?.by.map(({ kind }) => kind)
      .join(),
  ).toBe('subject,key,ip,route,method,global')
  expect(policy.limits.get('b')).toMatchObject({ size: 1000, applies: 'all', onUnavailable: 'deny' })
  expect(policy.limits.get('b')).toMatchObject({ capacity: 1000, lease: 20, blockMs: 0 })
  expect(policy.limits.get('c')).toMatchObject({
    by: [
      { kind: 'header', name: 'x-tenant' },
      { kind: 'query', name: 'Q' },
      { kind: 'attribute', name: 'A' },
      { kind: 'path', name: 'a' },
      { kind: 'claim', name: 'https://a/b' },
      { kind: 'cookie', name: 'Sid' },
      { kind: 'body', name: '/a/0/b~1c' },
    ],
    mode: 'shadow',
  })
  expect(policy.limits.get('d')).toMatchObject({ blockMs: 31 * 86_400_000, onUnavailable: 'local' })
  expect(policy.limits.get('e')).toMatchObject({ size: 7, capacity: 2562, blockMs: 1_000 })
  expect(policy.limits.get('f')).toMatchObject({ size: 90_000_000, capacity: 90_000_000 })
  expect(policy.subjects.get('acme@example.com')).toMatchObject({ timeZone: 'Asia/Kathmandu', anchor: 31 })
  expect([...policy.keys.values()].map(({ id }) => id)).toEqual(['first', '999999999999'])
})

test('a policy can be JSON, indented with tabs', () => {
  const json = JSON.stringify(
    { version: 1, plans: { free: { limits: [] } }, subjects: { a: { plan: 'free' } } },
    null,
    '\t',
  )
  expect(parsed(json).subjects.get('a')?.plan.name).toBe('free')
})

test('sections can be empty or left out, and lines can end as on Windows', () => {
  expect(parsed('version: 1\r\nplans:\r\nlimits:\r\n  # none yet\r\nsubjects:\r\n').plans.size).toBe(0)
})

test('the names of built-in members of objects are names like any other', () => {
  const policy = parsed(
    '{ version: 1, plans: { constructor: { limits: [] } }, subjects: { toString: { plan: constructor } } }',
  )
  expect(policy.subjects.get('toString')?.plan.name).toBe('constructor')
  expect(policy.subjects.get('valueOf')).toBeUndefined()
})

test('without Redis, a limit goes on counting in each process unless it says otherwise', () => {
  const text = (more: string) => `{ version: 1, limits: { m: { algorithm: sliding_log, size: 5, window: 1m${more} } } }`
  expect(parsed(text('')).limits.get('m')?.onUnavailable).toBe('local')
  expect(parsed(text(', onUnavailable: allow')).limits.get('m')?.onUnavailable).toBe('allow')
})

test('a subject has its own version of a limit, with what it does not say taken from the limit', () => {
  const policy = parsed(`
version: 1
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m, block: 10m, onUnavailable: deny }
  even: { algorithm: token_bucket, size: 10, window: 1s }
  bursty: { algorithm: token_bucket, size: 10, window: 1s, burst: 30 }
  day: { algorithm: fixed_window, size: 9, period: day, applies: all }
  search: { algorithm: sliding_log, size: 5, window: 1m }
plans: { free: { limits: [minute, even, bursty] } }
routes: [{ match: GET /search, limits: [search] }]
subjects:
  a: { plan: free, limits: { minute: { size: 500 }, even: { size: 20 }, bursty: { size: 20 } } }
  b: { plan: free, limits: { minute: { mode: shadow }, day: { thresholds: [] }, search: { size: 6 } } }
  c: { plan: free, limits: {} }
`)
  const own = (id: string) => policy.subjects.get(id)?.ownLimits ?? new Map()
  expect(own('a').get('minute')).toEqual({ ...policy.limits.get('minute'), size: 500, capacity: 500 })
  expect(own('a').get('even')).toMatchObject({ size: 20, capacity: 20 })
  expect(own('a').get('bursty')).toMatchObject({ size: 20, capacity: 30 })
  expect(own('b').get('minute')).toEqual({ ...policy.limits.get('minute'), mode: 'shadow', blockMs: 0 })
  expect(own('b').get('day')).toMatchObject({ thresholds: [], size: 9 })
  expect(own('b').get('search')).toMatchObject({ size: 6, algorithm: 'sliding_log' })
  expect(own('c')).toBe(noOwnLimits)
})

test('subjects with equal limits of their own, and routes with equal limits, share them', () => {
  const limits = '{ limits: { m: { size: 2 }, n: { size: 3 } }, plan: p }'
  const swapped = '{ limits: { n: { size: 3, mode: enforce }, m: { size: 2 } }, plan: p }'
  const policy = parsed(`{ version: 1,
    limits: { m: { algorithm: fixed_window, size: 1, window: 1m }, n: { algorithm: fixed_window, size: 1, window: 1m } },
    routes: [{ match: GET /a, limits: [m] }, { match: GET /b, limits: [m] }, { match: GET /c, limits: [] }],
    plans: { p: { limits: [m, n] } }, subjects: { a: ${limits}, b: ${swapped}, c: { plan: p, limits: { m: { size: 2 } } } } }`)
  const [a, b, c] = ['a', 'b', 'c'].map((id) => policy.subjects.get(id)?.ownLimits)
  expect(a).toBe(b)
  expect(c?.get('m')).toBe(a?.get('m'))
  expect(policy.routes[0]?.limits).toBe(policy.routes[1]?.limits)
  expect(policy.routes[2]?.limits).toBe(noRouteLimits)
})

test('what is written of identity, tokens, keys, upstreams and costs is taken as written', () => {
  const policy = parsed(`
version: 1
plans: { free: { limits: [] } }
upstreams: { a: { url: "http://a", timeout: 2m } }
routes: [{ match: GET /%73earch, cost: "json:/a/0" }, { match: GET /b, cost: header:X-Cost }]
identity:
  keyHeaders: [X-My-Key]
  keyQuery: api_key
  jwt: [{ issuer: "https://id/", jwksUrl: "https://id/keys", plan: free }]
  trustedHeaders: { from: [10.0.0.0/8], subject: X-User, planHeader: X-Plan, plan: free }
  trustedProxies: [127.0.0.1, "::1/128"]
  ipv6Prefix: 56
  anonymous: free
  unknown: free
tokens: { ci: { sha256: ${hash}, scopes: [check, admin] } }
subjects: { s: { plan: free, keys: [{ sha256: ${hash}, expires: 2027-01-31T05:45:00+05:45 }] } }
`)
  const plan = policy.plans.get('free')
  expect(policy.identity).toEqual({
    keyHeaders: ['x-my-key'],
    keyQuery: 'api_key',
    jwt: [
      {
        issuer: 'https://id/',
        jwksUrl: 'https://id/keys',
        audience: undefined,
        algorithms: ['RS256', 'ES256'],
        subjectClaim: 'sub',
        planClaim: undefined,
        plan,
        allowPrivate: false,
      },
    ],
    trustedHeaders: { from: ['10.0.0.0/8'], subject: 'x-user', planHeader: 'x-plan', plan },
    trustedProxies: ['127.0.0.1/32', '::1/128'],
    ipv6Prefix: 56,
    anonymousPlan: plan,
    unknownPlan: plan,
  })
  expect(policy.tokens).toEqual(new Map([[hash, { name: 'ci', sha256: hash, scopes: ['check', 'admin'] }]]))
  expect(policy.keys.get(hash)?.expiresAtMs).toBe(Date.UTC(2027, 0, 31))
  expect(policy.upstreams.get('a')?.timeoutMs).toBe(120_000)
  expect(policy.routes.map(({ path, template, cost, costFrom }) => ({ path, template, cost, costFrom }))).toEqual([
    { path: '/search', template: 'GET /%73earch', cost: 1, costFrom: { kind: 'json', pointer: '/a/0' } },
    { path: '/b', template: 'GET /b', cost: 1, costFrom: { kind: 'header', name: 'x-cost' } },
  ])
})

test('what a limit does beyond its size is read with its defaults, and stays in the versions of subjects', () => {
  const policy = parsed(`version: 1
plans: { p: { limits: [d, g, b] } }
limits:
  d: { algorithm: token_bucket, size: 10, window: 1s, onExceed: delay }
  e: { algorithm: token_bucket, size: 10, window: 1s, onExceed: { delay: 250ms, queue: 7 } }
  g: { algorithm: fixed_window, size: 10, window: 1s, onExceed: degrade }
  b: { algorithm: fixed_window, size: 10, window: 1s, block: 10m, onExceed: block }
  c: { algorithm: fixed_window, size: 10, window: 1s, block: 10m, onExceed: { challenge: "https://Example.com/ü?a=1" } }
  n: { algorithm: fixed_window, size: 10, window: 1s }
subjects: { acme: { plan: p, limits: { d: { size: 99 }, g: { mode: shadow }, b: { block: 1m } } } }
`)
  const all = new Map([...policy.limits].map(([name, { onExceed }]) => [name, onExceed]))
  expect(Object.fromEntries(all)).toEqual({
    d: { kind: 'delay', delayMs: 5_000, queueMax: 100 },
    e: { kind: 'delay', delayMs: 250, queueMax: 7 },
    g: { kind: 'degrade' },
    b: { kind: 'block' },
    c: { kind: 'challenge', url: 'https://example.com/%C3%BC?a=1' },
    n: { kind: 'deny' },
  })
  const own = policy.subjects.get('acme')?.ownLimits
  expect(own?.get('d')).toMatchObject({ size: 99, onExceed: { kind: 'delay' } })
  expect(own?.get('g')).toMatchObject({ mode: 'shadow', onExceed: { kind: 'deny' } })
  expect(own?.get('b')).toMatchObject({ blockMs: 60_000, onExceed: { kind: 'block' } })
})

test('blocks grow where they are a list, also in the version of a subject; a list of one is its duration', () => {
  const policy = parsed(`
version: 1
limits:
  a: { algorithm: fixed_window, size: 1, window: 1m, block: [2m, 1h, 1d] }
  b: { algorithm: fixed_window, size: 1, window: 1m, block: [2m] }
plans: { p: { limits: [a, b] } }
subjects:
  x: { plan: p, limits: { a: { block: 5m }, b: { block: [1m, 2m] } } }
  y: { plan: p, limits: { a: { mode: shadow }, b: { size: 3 } } }
  z: { plan: p, limits: { a: { size: 3 } } }
`)
  const blocks = (limits: ReadonlyMap<string, Limit> | undefined) =>
    Object.fromEntries([...(limits ?? [])].map(([name, one]) => [name, [one.blockMs, one.blockLengths]]))
  const dayMs = 86_400_000
  const [ofA, ofB] = [
    [dayMs, [120_000, 3_600_000, dayMs]],
    [120_000, undefined],
  ]
  expect(blocks(policy.limits)).toEqual({ a: ofA, b: ofB })
  const own = (id: string) => blocks(policy.subjects.get(id)?.ownLimits)
  expect(own('x')).toEqual({ a: [300_000, undefined], b: [120_000, [60_000, 120_000]] })
  expect(own('y')).toEqual({ a: [0, undefined], b: ofB })
  expect(own('z')).toEqual({ a: ofA })
})

test('keys that did something in an earlier release are read with a remark, whatever they say', () => {
  const text = `
version: 1
plans: { p: { limits: [] } }
subjects:
  x: { plan: p, contact: { email: [a@b.example], language: { any: thing }, digest: daily } }
`
  const read = parsePolicy(text, 'weir.yaml')
  expect(read.kind === 'policy' && [read.policy.contacts.get('x'), read.remarks.map(formatProblem)]).toEqual([
    { email: ['a@b.example'] },
    [
      'weir.yaml:5:50  subjects.x.contact.language: mail has one set of templates; remove it',
      'weir.yaml:5:76  subjects.x.contact.digest: each alert is a mail of its own; remove it',
    ],
  ])
})
