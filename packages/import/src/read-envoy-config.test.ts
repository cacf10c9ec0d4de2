import { expect, test } from 'vitest'
import { formatImportProblem } from './foreign-file.ts'
import { Notes } from './notes.ts'
import { readEnvoyConfig } from './read-envoy-config.ts'
import { openYaml } from './yaml-config.ts'

const read = (text: string) => {
  const [file] = openYaml([{ name: 'rl.yaml', text }])
  const config = file && readEnvoyConfig(file, new Notes())
  return { config, problems: file?.file.problems.map(formatImportProblem) }
}
const problemsOf = (text: string) => read(text).problems ?? []
const limit = (text: string) => `domain: d\ndescriptors:\n- key: a\n  rate_limit: ${text}`

test('values are texts whatever YAML takes them for, units have no case, aliases and merge keys are what they stand for', () => {
  const { config, problems } = read(`
domain: d
descriptors:
- key: number
  value: 404
  rate_limit: &slow { unit: HoUr, requests_per_unit: 7 }
- { key: on, value: true, rate_limit: { <<: *slow, requests_per_unit: 8 }, shadow_mode: yes }
- { key: same, rate_limit: *slow }
`)
  expect(problems).toEqual([])
  expect(config?.descriptors).toMatchObject([
    { key: 'number', value: '404', line: 4, isShadow: false, limit: { line: 6, per: { unit: 'hour', requests: 7 } } },
    { key: 'on', value: 'true', line: 7, isShadow: true, limit: { per: { unit: 'hour', requests: 8 } } },
    { key: 'same', value: '', limit: { per: { unit: 'hour', requests: 7 } } },
  ])
})

test.each([
  ['a: [', 'rl.yaml:1  is not valid YAML: '],
  ['- a', 'rl.yaml:1  must be a configuration of envoyproxy/ratelimit: `domain` and `descriptors`'],
  ['descriptors: []', 'rl.yaml:1  needs a non-empty `domain`'],
  [
    'domain: a\n---\ndomain: b',
    'rl.yaml:3  is not valid YAML: a configuration is a single document, but another one begins here',
  ],
  ['domain: d\ndescriptors: {}', 'rl.yaml:2  must be a list of descriptors'],
  ['domain: d\ndescriptors: [a]', 'rl.yaml:2  must be a descriptor: a map with a `key`'],
  ['domain: d\ndescriptors: [{ value: x }]', 'rl.yaml:2  needs a non-empty `key`'],
  ['domain: d\ndomain: e', 'rl.yaml:2  domain is written twice'],
  [limit('{ unit: fortnight, requests_per_unit: 1 }'), 'rl.yaml:4  the unit must be one of second, minute, hour, day'],
  [limit('{ requests_per_unit: 1 }'), 'rl.yaml:4  the unit must be one of'],
  [limit('{ unit: day, requests_per_unit: -1 }'), 'rl.yaml:4  `requests_per_unit` must be a whole number from 0 to'],
  [limit('{ unit: day, requests_per_unit: 4294967296 }'), 'rl.yaml:4  `requests_per_unit` must be a whole number'],
  [limit('{ unit: day, requests_per_unit: 010 }'), 'rl.yaml:4  `requests_per_unit` is 010, which that server reads as'],
  [limit('{ unit: day, name: "\\ud800" }'), 'rl.yaml:4  `name` contains half a character'],
  [limit('{ unit: day, <<: {}, <<: {} }'), 'rl.yaml:4  << is written twice'],
  [
    limit('{ unit: day, requests_per_unit: 5, <<: { requests_per_unit: 9 } }'),
    'rl.yaml:4  `<<` comes after requests_per',
  ],
  [
    'domain: d\ndescriptors:\n- { <<: { rate_limit: { unit: day, requests_per_unit: 5 } }, key: a, rate_limit: { unit: hour } }',
    'rl.yaml:3  rate_limit is also set by `<<`, and that server mixes both',
  ],
  [limit('{ unit: day, unlimited: true }'), 'rl.yaml:4  has `unit` and `unlimited`; a limit supports only one of them'],
  [limit('{ unlimited: maybe, unit: day }'), 'rl.yaml:4  `unlimited` must be true or false, but is maybe'],
  [limit('{ unit: day, replaces: [{}] }'), 'rl.yaml:4  needs the `name` of a limit'],
  [limit('{ unit: day, name: n, replaces: [{ name: n }] }'), 'rl.yaml:4  a limit cannot replace itself'],
  ['&a { domain: d, descriptors: [{ key: k, descriptors: [*a] }] }', 'rl.yaml:1  needs a non-empty `key`'],
])('%j is refused with its line', (text, problem) => {
  expect(problemsOf(text)[0]).toContain(problem)
})

test('a configuration that contains itself by an alias is refused', () => {
  const [first] = problemsOf('domain: d\ndescriptors: &a\n- key: k\n  descriptors: *a')
  expect(first).toContain('is nested deeper than 32 descriptors')
})

test('aliases that multiply a long list are refused', () => {
  const names = Array.from({ length: 1_000 }, (_, at) => `{ name: n${at} }`)
  const limits = Array.from(
    { length: 200 },
    (_, at) =>
      `- { key: k, value: v${at}, rate_limit: { unlimited: true, replaces: ${at === 0 ? `&all [${names}]` : '*all'} } }`,
  )
  expect(problemsOf(`domain: d\ndescriptors:\n${limits.join('\n')}`)[0]).toContain('has more than 100000 entries')
})

test('merge keys that multiply are refused', () => {
  const levels = Array.from(
    { length: 9 },
    (_, at) =>
      `- &m${at} { <<: [${Array(9)
        .fill(`*m${at - 1}`)
        .join(', ')}] }`,
  )
  levels[0] = '- &m0 { key: k }'
  expect(problemsOf(`domain: d\ndescriptors:\n${levels.join('\n')}`)[0]).toContain('must be a descriptor')
})
