import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { formatImportProblem } from './foreign-file.ts'
import { importKong } from './import-kong.ts'
import { importedJson, importedText, inShadow } from './imported-policy.ts'

const imported = (text: string) => {
  const result = importKong([{ name: 'kong.yml', text }])
  if (result.kind === 'problems') throw new Error(result.problems.map(formatImportProblem).join('\n'))
  return result
}

test("A consumer's own plugin counts instead of those of routes, services and all, as Kong's precedence has it", () => {
  const { policy, notes } = imported(`
_format_version: "3.0"
services:
- name: s
  plugins: [{ name: rate-limiting, config: { minute: 5, policy: redis } }]
  routes: [{ name: r, paths: [/] }]
consumers: [{ username: ada }]
plugins:
- { name: rate-limiting, consumer: { username: ada }, config: { day: 9, limit_by: consumer, policy: redis, fault_tolerant: false } }
`)
  expect(importedJson(policy)).toEqual({
    version: 1,
    identity: { anonymous: 'everyone' },
    plans: { everyone: { limits: [] }, 'kong-ada': { limits: ['ada.day'] } },
    subjects: { ada: { plan: 'kong-ada' } },
    limits: {
      's.minute': { algorithm: 'fixed_window', size: 5, window: '1m', by: ['subject'], onUnavailable: 'allow' },
      'ada.day': {
        ...{ algorithm: 'fixed_window', size: 9, window: '1d', by: ['subject'], onUnavailable: 'deny' },
        replaces: ['s.minute'],
      },
    },
    routes: [{ match: '* /*', limits: ['s.minute'] }],
  })
  for (const one of [policy, inShadow(policy)]) {
    const parsed = parsePolicy(importedText(one, notes), 'weir.yaml')
    expect(parsed.kind === 'problems' && parsed.problems).toBe(false)
  }
})

test.each([
  ['hello: world', 'kong.yml:1  must be a declarative configuration of Kong'],
  ['plugins:\n- { name: rate-limiting, config: { minute: many } }', 'kong.yml:2  `minute` must be a whole number'],
  ['plugins:\n- { name: rate-limiting-advanced, config: { limit: [1], window_size: [] } }', 'kong.yml:2  `limit` and'],
  ['services: {}', 'kong.yml:1  must be a list'],
])('%j is refused with its line', (text, problem) => {
  const result = importKong([{ name: 'kong.yml', text }])
  expect(result.kind === 'problems' && result.problems.map(formatImportProblem)).toEqual([
    expect.stringContaining(problem),
  ])
})
