import { expect, test } from 'vitest'
import { parsePolicy } from './parse-policy.ts'
import { formatProblem } from './text-reader.ts'

test.each([
  ['plans: { free: { limits: [day, minute] } }', 'minute'],
  ['plans: { top: { limits: [day, minute] }, free: { limits: [day] } }', undefined],
  ['plans: { free: { limits: [day] } }\nroutes: [{ match: GET /a, limits: [minute] }]', undefined],
  ['plans: { free: { limits: [] } }\nroutes: [{ match: GET /a, limits: [day, minute] }]', 'minute'],
  ['plans: { free: { limits: [day, quiet] } }', 'quiet'],
  ['plans: { free: { limits: [day, other] } }', undefined],
  ['plans: { free: { limits: [] } }', undefined],
])('A lease is remarked on where Redis is asked for another limit of all its requests: %s', (parts, other) => {
  const text = `version: 1
limits:
  day: { algorithm: fixed_window, size: 9000, period: day, lease: 100 }
  other: { algorithm: fixed_window, size: 9000, period: day, lease: 100 }
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  quiet: { algorithm: fixed_window, size: 100, window: 1m, lease: 10, mode: shadow }
${parts}`
  const read = parsePolicy(text, 'weir.yaml')
  const why = `weir.yaml:3:60  limits.day.lease: saves nothing: all its requests also count against ${other}; without a \`lease\` on that limit too, each request still calls Redis`
  const remarks = read.kind === 'policy' ? read.remarks.map(formatProblem) : ['wrong']
  expect(remarks.filter((one) => one.includes('limits.day'))).toEqual(other === undefined ? [] : [why])
})

test('A log of more than 10,000 units is remarked on with the memory that it takes', () => {
  const limit = (name: string, size: number) => `  ${name}: { algorithm: sliding_log, size: ${size}, window: 1m }\n`
  const read = parsePolicy(`version: 1\nlimits:\n${limit('a', 10_000)}${limit('b', 100_000)}`, 'weir.yaml')
  expect(read.kind === 'policy' && read.remarks.map(formatProblem)).toEqual([
    'weir.yaml:4:32  limits.b.size: uses up to 800 kB of Redis memory for each count, 8 bytes per unit; a sliding_window uses 41 bytes',
  ])
})
