import { createDescriptorMatcher } from '@weir/policy/match/match-descriptor.ts'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { formatImportProblem } from './foreign-file.ts'
import { importEnvoy } from './import-envoy.ts'
import { formatImportNote, type ImportResult, importedJson, importedText } from './imported-policy.ts'

type Imported = Extract<ImportResult, { kind: 'imported' }>

function imported(...texts: string[]): Imported {
  const result = importEnvoy(texts.map((text, at) => ({ name: `${at}.yaml`, text })))
  if (result.kind === 'problems') throw new Error(result.problems.map(formatImportProblem).join('\n'))
  return result
}

const parsed = ({ policy, notes }: Imported) => {
  const result = parsePolicy(importedText(policy, notes), 'weir.yaml')
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result.policy
}

const notesOf = ({ notes }: Imported) => notes.map(({ line, kind, what }) => `${line} ${kind} ${what}`)

const proxy = `
domain: rl
descriptors:
- key: source
  value: proxy
  descriptors:
  - key: target
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: target
    value: v1/*
    rate_limit: { unit: MINUTE, requests_per_unit: 0, name: api }
    shadow_mode: true
- key: open
  rate_limit: { unlimited: true }
- key: health
  value: check
- key: class
  rate_limit: { unit: second, requests_per_unit: 9, replaces: [{ name: api }, { name: nobody }] }
`

test('a configuration becomes limits and routes that weir check takes', () => {
  const result = imported(proxy)
  expect(importedJson(result.policy)).toEqual({
    version: 1,
    limits: {
      'rl.source.proxy.target': { algorithm: 'fixed_window', size: 5, window: '1d', by: ['attribute:target'] },
      api: { algorithm: 'fixed_window', size: 0, window: '1m', by: ['attribute:target'], mode: 'shadow' },
      'rl.class': { algorithm: 'fixed_window', size: 9, window: '1s', by: ['attribute:class'], replaces: ['api'] },
    },
    routes: [
      { match: 'DESCRIPTOR /rl/source/proxy/target/v1%2F*', limits: ['api'] },
      { match: 'DESCRIPTOR /rl/source/proxy/target/:target', limits: ['rl.source.proxy.target'] },
      { match: 'DESCRIPTOR /rl/open/:open', limits: [] },
      { match: 'DESCRIPTOR /rl/health/check', limits: [] },
      { match: 'DESCRIPTOR /rl/class/:class', limits: ['rl.class'] },
    ],
  })
  expect(parsed(result).routes).toHaveLength(5)
  expect(notesOf(result)).toEqual([
    expect.stringContaining('9 info target=v1/* is a prefix below another descriptor'),
    '18 info no limit of the domain is named nobody, so nothing is replaced',
  ])
})

test('the text says where each entry comes from, and begins with what could not be carried over', () => {
  const result = imported(
    'domain: d\ndescriptors:\n- key: a\n  odd: 1\n  rate_limit: { unit: hour, requests_per_unit: 2 }',
  )
  expect(
    importedText(result.policy, result.notes),
  ).toBe(`# 0.yaml:4  not carried over: odd of a descriptor: not known here. Add it to the policy if you need it.
version: 1

limits:
  # 0.yaml:3
  d.a: { algorithm: fixed_window, size: 2, window: 1h, by: ["attribute:a"] }

routes:
  # 0.yaml:3
  - { match: "DESCRIPTOR /d/a/:a", limits: [d.a] }
`)
})

test('a branch without a limit is not passed over for a more general one', () => {
  const { policy } = imported(`
domain: d
descriptors:
- key: a
  rate_limit: { unit: hour, requests_per_unit: 2 }
  descriptors:
  - { key: b, rate_limit: { unit: hour, requests_per_unit: 3 } }
- key: a
  value: special
  descriptors:
  - { key: c, rate_limit: { unit: hour, requests_per_unit: 4 } }
`)
  expect(policy.routes.map(({ body }) => [body.match, body.limits])).toEqual([
    ['DESCRIPTOR /d/a/special/c/:c', ['d.a.special.c']],
    ['DESCRIPTOR /d/a/special', []],
    ['DESCRIPTOR /d/a/special/b/:b', []],
    ['DESCRIPTOR /d/a/:a', ['d.a']],
    ['DESCRIPTOR /d/a/:a/b/:b', ['d.a.b']],
  ])
})

test('a gap comes before no rule of its own branch', () => {
  const limit = 'rate_limit: { unit: hour, requests_per_unit: 1 }'
  const { policy } = imported(`
domain: d
descriptors:
- { key: a, descriptors: [{ key: b, value: z, descriptors: [{ key: c, ${limit} }] }] }
- { key: a, value: x, descriptors: [{ key: b, descriptors: [{ key: c, value: y, ${limit} }] }] }
`)
  expect(policy.routes.map(({ body }) => [body.match, body.limits])).toEqual([
    ['DESCRIPTOR /d/a/x/b/:b/c/y', ['d.a.x.b.c.y']],
    ['DESCRIPTOR /d/a/x/b/:b/c/:c', []],
    ['DESCRIPTOR /d/a/:a/b/z/c/:c', ['d.a.b.z.c']],
  ])
})

test('names of limits are valid and unique, and the same for the same configuration', () => {
  const one = `{ unit: hour, requests_per_unit: 1, name: twice }`
  const result = imported(`
domain: "a domain/with spaces"
descriptors:
- { key: k, value: "x y", rate_limit: ${one} }
- { key: k, value: "x/y", rate_limit: ${one} }
- { key: k, value: ${'z'.repeat(90)}, rate_limit: { unit: hour, requests_per_unit: 1, name: unlimited } }
- { key: k, value: ${'z'.repeat(91)}, rate_limit: { unit: hour, requests_per_unit: 1, name: "not good" } }
`)
  const names = [...parsed(result).limits.keys()]
  expect(names.slice(0, 2)).toEqual(['a-domain-with-spaces.k.x-y', 'a-domain-with-spaces.k.x-y-2'])
  expect(new Set(names).size).toBe(4)
  expect([...imported(proxy).policy.limits.keys()]).toEqual([...imported(proxy).policy.limits.keys()])
})

test('a limit that is replaced replaces none itself, and one that is unlimited still replaces', () => {
  const result = imported(`
domain: d
descriptors:
- { key: a, rate_limit: { unit: hour, requests_per_unit: 1, name: a } }
- { key: b, rate_limit: { unit: hour, requests_per_unit: 1, name: b, replaces: [{ name: a }] } }
- { key: c, rate_limit: { unlimited: true, replaces: [{ name: b }] } }
`)
  const { limits } = parsed(result)
  expect([...limits.values()].map(({ name, size, replaces = [] }) => [name, size, replaces])).toEqual([
    ['a', 1, []],
    ['b', 1, []],
    ['d.c', 9_000_000_000_000_000, ['b']],
  ])
  expect(notesOf(result)).toEqual([expect.stringContaining('5 changed d.c replaces this limit')])
})

test('what a policy cannot say is left out with its line and what to do', () => {
  const hour = 'rate_limit: { unit: hour, requests_per_unit: 1 }'
  const nine = [...'abcdefghi'].reduceRight(
    (inner, key) => `{ key: ${key}, ${inner === '' ? hour : `descriptors: [${inner}]`} }`,
    '',
  )
  const result = imported(`
domain: d
descriptors:
- { key: "key*", ${hour} }
- { key: k, value: ${'x'.repeat(1_100)}, ${hour} }
- { key: "a key", ${hour} }
- ${nine}
- { key: p, value: "a*", ${hour} }
- { key: p, value: "ab*", ${hour} }
- { key: q, ${hour}, descriptors: [{ key: q, ${hour} }] }
- { key: s, value: "a*", share_threshold: true, detailed_metric: true, ${hour} }
- { key: t, quota_mode: true, ${hour} }
`)
  expect(parsed(result).routes.map(({ template }) => template)).toEqual([
    'DESCRIPTOR /d/p/a*',
    'DESCRIPTOR /d/q/:q',
    'DESCRIPTOR /d/q/:q/q/:q',
    'DESCRIPTOR /d/s/a*',
    'DESCRIPTOR /d/t/:t',
  ])
  expect(notesOf(result)).toEqual([
    expect.stringMatching(/^4 lost key\*: matches keys by prefix/),
    expect.stringMatching(/^5 lost .*no route can match this/),
    expect.stringMatching(/^6 lost the key "a key" cannot be used in `by`/),
    expect.stringMatching(/^7 lost counts 9 keys apart/),
    expect.stringMatching(/^9 info p=ab\* is never reached, because p=a\* \(line 8\) comes first/),
    expect.stringMatching(/^11 info detailed_metric/),
    expect.stringMatching(/^12 changed quota_mode became `mode: shadow`/),
  ])
  const twice = [...parsed(result).limits.values()].find(({ by }) => by.length === 2)
  expect(twice?.by.map((part) => ('name' in part ? part.name : ''))).toEqual(['q', 'q#2'])
  expect(parsed(result).limits.get('d.s.a_')?.by).toEqual([{ kind: 'global' }])
  for (const note of result.notes)
    expect(formatImportNote(note)).toMatch(
      /^0\.yaml:\d+ {2}(?:not carried over|carried over otherwise|to know): .+\. [A-Z].+\.$/,
    )
})

test('A star before the end is named, and its route is for the star itself, which every version matches', () => {
  const hour = 'rate_limit: { unit: hour, requests_per_unit: 1 }'
  const result = imported(`
domain: d
descriptors:
- { key: k, value: "bar*b", ${hour} }
- { key: k, value: "foo*bar*baz", ${hour} }
- { key: k, value: "*end", ${hour} }
- { key: k, value: "*mid*", descriptors: [{ key: below, ${hour} }] }
- { key: k, value: "ab*c*", ${hour} }
- { key: k, value: "ab**", ${hour} }
- { key: k, value: "*", ${hour} }
- { key: "k*y", value: v, ${hour} }
- { key: up, value: v, descriptors: [{ key: in, value: "a*b", ${hour} }] }
`)
  expect(parsed(result).routes.map(({ path }) => path)).toEqual([
    '/d/k/bar%2Ab',
    '/d/k/foo%2Abar%2Abaz',
    '/d/k/%2Aend',
    '/d/k/%2Amid*/below/:below',
    '/d/k/%2Amid*',
    '/d/k/ab%2Ac*',
    '/d/k/ab*',
    '/d/k/:k',
    '/d/k%2Ay/v',
    '/d/up/v/in/a%2Ab',
  ])
  const stars = ['4 k=bar*b', '5 k=foo*bar*baz', '6 k=*end', '7 k=*mid*', '8 k=ab*c*', '11 k*y=v', '12 in=a*b']
  expect(notesOf(result).filter((note) => note.includes(' lost '))).toEqual(
    stars.map((star) => expect.stringContaining(`${star.replace(' ', ' lost ')}: a \`*\` before its end`)),
  )
})

test.each([
  ['domain: d\nalgorithm: x', '2 lost algorithm'],
  ['domain: d\nrate_limits: [{ actions: [] }]', '2 lost rate_limits'],
  ['domain: d\ndescriptors:\n- key: a\n  unit_multiplier: 2', '4 lost unit_multiplier'],
  ['domain: d\ndescriptors:\n- key: a\n  Rate_Limit: {}', '4 lost Rate_Limit'],
  ['domain: d\ndescriptors:\n- key: a\n  rate_limit:\n    unlimited: true\n    algorithm: x', '6 lost algorithm'],
  ['domain: d\ndescriptors:\n- key: a\n  metadata: { any: { thing: [1] } }', '4 changed metadata'],
])('In %j each key is carried over or named', (text, named) => {
  expect(notesOf(imported(text))).toEqual([expect.stringContaining(named)])
})

test('what the gRPC server refuses is left out with its line', () => {
  const hour = 'rate_limit: { unit: hour, requests_per_unit: 1 }'
  const deep = Array.from({ length: 17 }).reduce<string>(
    (inner) => `{ key: a, value: b, ${inner === '' ? hour : `descriptors: [${inner}]`} }`,
    '',
  )
  const result = imported(`
domain: d
descriptors:
- ${deep}
- { key: ${'k'.repeat(129)}, value: a, ${hour} }
- { key: "a\\tb", value: a, ${hour} }
`)
  expect(result.policy.routes).toEqual([])
  expect(notesOf(result)).toEqual([
    expect.stringMatching(/^4 lost it is 17 descriptors deep/),
    expect.stringMatching(/^5 lost "k+" has more than 128 characters/),
    expect.stringMatching(/^6 lost "a\\tb" has .*a control character/),
  ])
  const domain = imported(`domain: ${'d'.repeat(129)}\ndescriptors: [{ key: a, value: b, ${hour} }]`)
  expect(notesOf(domain)).toEqual([expect.stringMatching(/^2 lost "d+" has more than 128 characters/)])
})

test('files of one domain are one; the same descriptor in both is a problem that names both places', () => {
  const a = 'domain: d\ndescriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }]'
  const b = 'domain: d\ndescriptors: [{ key: b, rate_limit: { unit: hour, requests_per_unit: 1 } }]'
  const merged = imported(a, b)
  expect([...merged.policy.limits.keys()]).toEqual(['d.a', 'd.b'])
  expect(notesOf(merged)).toEqual(['1 info domain d is in 0.yaml too; both are one, as with MERGE_DOMAIN_CONFIG=true'])
  const twice = importEnvoy([
    { name: 'a.yaml', text: a },
    { name: 'b.yaml', text: a },
  ])
  expect(twice.kind === 'problems' && twice.problems.map(formatImportProblem)).toEqual([
    'b.yaml:2  d a is there twice, first at a.yaml:2',
  ])
})

test('an empty domain becomes an empty policy', () => {
  const result = imported('domain: d')
  expect(importedText(result.policy, result.notes)).toBe('# Everything was converted.\nversion: 1\n')
  expect(createDescriptorMatcher(parsed(result).routes).knows('d')).toBe(false)
})

test('A ConfigMap is read as the files that it has, with its own lines', () => {
  const result = imported(`apiVersion: v1
kind: Service
metadata: { name: ratelimit }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: ratelimit-config }
data:
  ratelimit-config.yaml: |
    domain: contour
    descriptors:
      - key: remote_address
        odd: 1
        rate_limit: { unit: minute, requests_per_unit: 3 }
`)
  expect([...result.policy.limits.keys()]).toEqual(['contour.remote_address'])
  expect(notesOf(result)).toEqual([expect.stringMatching(/^13 lost odd/)])
})
