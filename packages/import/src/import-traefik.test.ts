import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { formatImportProblem } from './foreign-file.ts'
import { importTraefik } from './import-traefik.ts'
import { importedText, inShadow } from './imported-policy.ts'

const limited = (fields: string) => `http: { middlewares: { m: { rateLimit: { ${fields} } } } }`

test.each([
  ['average: 100, burst: 7', { size: 100, window: '1s', burst: 7, onExceed: { delay: '5ms', queue: 1 } }],
  ['average: 6, period: 1m', { size: 6, window: '1m', burst: 1, onExceed: { delay: '500ms', queue: 1 } }],
  ['average: 3, period: 2', { size: 3, window: '2s', burst: 1, onExceed: { delay: '500ms', queue: 1 } }],
  ['average: 1, period: 10ms', { size: 10, window: '100ms', burst: 1, onExceed: { delay: '5ms', queue: 1 } }],
  ['average: 1000, period: 1s, burst: 0', { size: 1_000, window: '1s', burst: 1 }],
  ['average: 9, period: 1h30m', { size: 9, window: '90m', burst: 1, onExceed: { delay: '500ms', queue: 1 } }],
])('%s is a bucket of the same rate and burst', (fields, body) => {
  const result = importTraefik([{ name: 'dynamic.yml', text: limited(fields) }])
  if (result.kind === 'problems') throw new Error(result.problems.map(formatImportProblem).join('\n'))
  expect(result.policy.limits.get('m')?.body).toEqual({ algorithm: 'token_bucket', by: ['ip'], ...body })
  for (const one of [result.policy, inShadow(result.policy)]) {
    const parsed = parsePolicy(importedText(one, result.notes), 'weir.yaml')
    expect(parsed.kind === 'problems' && parsed.problems).toBe(false)
  }
})

test.each([
  ['hello: world', 'dynamic.yml:1  must be a dynamic configuration of Traefik'],
  [limited('average: 1, period: soon'), 'dynamic.yml:1  `period` must be a duration'],
  [limited('average: -1'), 'dynamic.yml:1  `average` must be a whole number'],
  ['http: {}\n---\nhttp: []', 'dynamic.yml:3  must be a map'],
])('%j is refused with its line', (text, problem) => {
  const result = importTraefik([{ name: 'dynamic.yml', text }])
  expect(result.kind === 'problems' && result.problems.map(formatImportProblem)).toEqual([
    expect.stringContaining(problem),
  ])
})
