import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseBadPolicies } from '../testing/bad-policies.ts'
import { parsePolicy } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

const badPolicies = parseBadPolicies(readFileSync(new URL('./bad-policies.txt', import.meta.url), 'utf8'))

test.each(badPolicies)('$name is reported with its line', ({ text, problems }) => {
  const parsed = parsePolicy(text, 'weir.yaml')
  expect(parsed.kind === 'problems' ? parsed.problems.map(formatProblem) : []).toEqual(problems)
})

test('bad-policies.txt has at least 50 cases, and each has a problem', () => {
  expect(badPolicies.length).toBeGreaterThanOrEqual(50)
  for (const { problems } of badPolicies) expect(problems).not.toHaveLength(0)
})

test.each([
  ['', '1:1  must be a policy (a map of its settings), but is empty'],
  ['# only a comment\n', '1:1  must be a policy (a map of its settings), but is empty'],
  ['[]', '1:1  must be a policy (a map of its settings), but is a list'],
  ['plans: {}', '1:1  needs `version`'],
  ['version: 2', '1:10  version: must be 1, the only supported version'],
  ['version: "1"', '1:10  version: must be 1, the only supported version'],
])('%j is not a policy', (text, problem) => {
  const parsed = parsePolicy(text, 'weir.yaml')
  expect(parsed.kind === 'problems' && parsed.problems.map(formatProblem)).toEqual([`weir.yaml:${problem}`])
})

test('all problems of a file are reported together, in the order of the file', () => {
  const wrong = badPolicies.filter(({ name }) =>
    ['a negative size', 'an unknown section', 'bad endpoints'].includes(name),
  )
  const text = ['version: 3', ...wrong.map((one) => one.text.replace('version: 1\n', ''))].join('\n')
  const parsed = parsePolicy(text, 'weir.yaml')
  const lines = parsed.kind === 'problems' ? parsed.problems.map(({ line }) => line) : []
  expect(lines).toEqual(lines.toSorted((a, b) => a - b))
  expect(lines).toHaveLength(6)
})

test('no message ever repeats a key, a password or a secret', () => {
  for (const { text } of badPolicies) {
    expect(JSON.stringify(parsePolicy(text, 'weir.yaml'))).not.toMatch(/topsecret|me:secret|c2VjcmV0/)
  }
})

test.each([15, 16, 17])('%i limits with the one for all: at most 16 make a decision', (count) => {
  const limits = Array.from(
    { length: count - 1 },
    (_, index) => `  l${index}: { algorithm: fixed_window, size: 1, window: 1m }`,
  )
  const names = limits.map((_, index) => `l${index}`).join(', ')
  const all = '  ip: { algorithm: fixed_window, size: 1, window: 1m, by: [ip], applies: all }'
  const text = ['version: 1', 'limits:', ...limits, all, `plans: { p: { limits: [${names}] } }`].join('\n')
  const parsed = parsePolicy(text, 'weir.yaml')
  expect(parsed.kind === 'policy' ? [] : parsed.problems.map(formatProblem)).toEqual(
    count <= 16
      ? []
      : [
          'weir.yaml:20:23  plans.p.limits: adds up to 17 limits with the 1 that apply to all; a decision can have at most 16',
        ],
  )
})

test.each([
  [8, []],
  [
    9,
    [
      'weir.yaml:23:30  routes[0].limits: adds up to 17 limits with the limits of plan wide and those that apply to all; a decision can have at most 16',
    ],
  ],
])('%i limits of a route, three of them among the ten of a plan, and one for all', (count, problems) => {
  const names = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `l${from + at}`)
  const ofPlan = names(0, 10)
  const ofRoute = names(7, 7 + count)
  const limits = names(0, 17).map((name) => `  ${name}: { algorithm: fixed_window, size: 1, window: 1m }`)
  const all = '  ip: { algorithm: fixed_window, size: 1, window: 1m, by: [ip], applies: all }'
  const plans = `plans: { narrow: { limits: [] }, wide: { limits: [${ofPlan}] } }`
  const text = [
    'version: 1',
    'limits:',
    ...limits,
    all,
    plans,
    'routes:',
    `  - { match: GET /a, limits: [${ofRoute}] }`,
  ]
  const parsed = parsePolicy(text.join('\n'), 'weir.yaml')
  expect(parsed.kind === 'policy' ? [] : parsed.problems.map(formatProblem)).toEqual(problems)
})

test('the 17th limit that applies to all is refused with its line', () => {
  const limits = Array.from(
    { length: 17 },
    (_, index) => `  l${index}: { algorithm: fixed_window, size: 1, window: 1m, applies: all }`,
  )
  const parsed = parsePolicy(
    ['version: 1', 'limits:', ...limits, 'plans: { p: { limits: [] } }'].join('\n'),
    'weir.yaml',
  )
  expect(parsed.kind === 'problems' && parsed.problems.map(formatProblem)).toEqual([
    'weir.yaml:19:3  limits.l16: is the 17th limit with `applies: all`; a decision can have at most 16',
  ])
})

test('a file that is wrong throughout gives a bounded list and the number of the rest', () => {
  const lines = Array.from({ length: 1_000 }, (_, index) => `  s${index}: { plan: none }`)
  const parsed = parsePolicy(['version: 1', 'subjects:', ...lines].join('\n'), 'weir.yaml')
  const problems = parsed.kind === 'problems' ? parsed.problems : []
  expect(problems).toHaveLength(201)
  expect(problems.at(-1)?.message).toBe('and 800 more problems')
})

const many = (count: number, of: (at: number) => string) => Array.from({ length: count }, (_, at) => of(at)).join(', ')
const tokens = (count: number) =>
  `tokens: { ${many(count, (at) => `t${at}: { sha256: "${String(at).padStart(64, '0')}", scopes: [read] }`)} }`

test.each([
  [8, 'keyHeaders', (at: number) => `x-key-${at}`, 'names 9 headers; a key is looked for in at most 8'],
  [16, 'jwt', (at: number) => `{ issuer: i${at}, jwksUrl: "https://a" }`, 'has 17 issuers; there are at most 16'],
  [1_000, 'trustedProxies', (at: number) => `10.0.${at >> 8}.${at & 255}`, 'has 1001 entries; there are at most 1000'],
])('at most %i %s are taken', (most, key, of, problem) => {
  const problemsOf = (count: number) => {
    const parsed = parsePolicy(`version: 1\nidentity: { ${key}: [${many(count, of)}] }`, 'weir.yaml')
    return parsed.kind === 'policy' ? [] : parsed.problems.map(({ message }) => message)
  }
  expect(problemsOf(most)).toEqual([])
  expect(problemsOf(most + 1)).toEqual([problem])
})

test('at most 1,000 tokens are taken', () => {
  expect(parsePolicy(`version: 1\n${tokens(1_000)}`, 'weir.yaml').kind).toBe('policy')
  const parsed = parsePolicy(`version: 1\n${tokens(1_001)}`, 'weir.yaml')
  expect(parsed.kind === 'problems' && parsed.problems.map(({ message }) => message)).toEqual([
    'has 1001 tokens; a policy can have at most 1000',
  ])
})
