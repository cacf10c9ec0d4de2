import { expect, test } from 'vitest'
import { formatImportProblem } from './foreign-file.ts'
import { importKong } from './import-kong.ts'
import { importNginx } from './import-nginx.ts'
import { importTraefik } from './import-traefik.ts'
import { importedJson } from './imported-policy.ts'
import { imported, problemsOf } from './testing/imported.ts'

test("A consumer's own plugin counts instead of those of routes, services and all, as Kong's precedence has it", () => {
  const { policy, notes } = imported(
    importKong,
    `
_format_version: "3.0"
services:
- name: s
  plugins: [{ name: rate-limiting, config: { minute: 5, policy: redis } }]
  routes: [{ name: r, paths: [/] }]
consumers: [{ username: ada }]
plugins:
- { name: rate-limiting, consumer: { username: ada }, config: { day: 9, limit_by: consumer, policy: redis, fault_tolerant: false } }
`,
  )
  expect(importedJson(policy)).toEqual({
    version: 1,
    identity: { anonymous: 'everyone' },
    plans: { everyone: { limits: [] }, 'kong-ada': { limits: ['ada.day'] } },
    subjects: { ada: { plan: 'kong-ada' } },
    limits: {
      's.minute': { algorithm: 'fixed_window', size: 5, window: '1m', by: ['subject'], onUnavailable: 'allow' },
      'ada.day': {
        algorithm: 'fixed_window',
        size: 9,
        window: '1d',
        by: ['subject'],
        onUnavailable: 'deny',
        replaces: ['s.minute'],
      },
    },
    routes: [{ match: '* /*', limits: ['s.minute'] }],
  })
  expect(problemsOf(policy, notes)).toEqual([])
})

const limited = (fields: string) => `http: { middlewares: { m: { rateLimit: { ${fields} } } } }`

test.each([
  ['average: 100, burst: 7', { size: 100, window: '1s', burst: 7, onExceed: { delay: '5ms', queue: 1 } }],
  ['average: 6, period: 1m', { size: 6, window: '1m', burst: 1, onExceed: { delay: '500ms', queue: 1 } }],
  ['average: 3, period: 2', { size: 3, window: '2s', burst: 1, onExceed: { delay: '500ms', queue: 1 } }],
  ['average: 1, period: 10ms', { size: 10, window: '100ms', burst: 1, onExceed: { delay: '5ms', queue: 1 } }],
  ['average: 1000, period: 1s, burst: 0', { size: 1_000, window: '1s', burst: 1 }],
  ['average: 9, period: 1h30m', { size: 9, window: '90m', burst: 1, onExceed: { delay: '500ms', queue: 1 } }],
])('%s is a bucket of the same rate and burst', (fields, body) => {
  const { policy, notes } = imported(importTraefik, limited(fields))
  expect(policy.limits.get('m')?.body).toEqual({ algorithm: 'token_bucket', by: ['ip'], ...body })
  expect(problemsOf(policy, notes)).toEqual([])
})

const zone = 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/s;'
const importers = { nginx: importNginx, kong: importKong, traefik: importTraefik }

test.each([
  ['nginx', 'a;\n}', 'file:2  an unexpected }'],
  ['nginx', 'a {\nb }', 'file:2  b has no ; at its end'],
  ['nginx', 'a {', 'file:1  ends within a directive'],
  ['nginx', 'a "b;', 'file:1  "\\"b;" is not terminated'],
  ['nginx', ';', 'file:1  an unexpected ;'],
  ['nginx', 'a { b_by_lua_block { x } }', 'file:1  b_by_lua_block: Lua is not supported'],
  ['nginx', '# configuration file /etc/nginx/nginx.conf:', 'file:1  is the output of nginx -T'],
  ['nginx', 'a {'.repeat(40), 'file:1  is nested deeper than 32 blocks'],
  ['nginx', '\nlimit_req_zone $x zone=z;', 'file:2  limit_req_zone must have a key'],
  ['nginx', 'limit_req_zone $remote_addr zone=z:1m rate=0r/s;', 'file:1  limit_req_zone must have a key'],
  ['nginx', `${zone} server { limit_req zone=z burst=many; }`, 'file:1  burst and delay must be whole numbers'],
  ['kong', 'hello: world', 'file:1  must be a declarative Kong configuration'],
  ['kong', 'plugins:\n- { name: rate-limiting, config: { minute: many } }', 'file:2  `minute` must be a whole number'],
  [
    'kong',
    'plugins:\n- { name: rate-limiting-advanced, config: { limit: [1], window_size: [] } }',
    'file:2  `limit` and',
  ],
  ['kong', 'services: {}', 'file:1  must be a list'],
  ['traefik', 'hello: world', 'file:1  must be a dynamic Traefik configuration'],
  ['traefik', limited('average: 1, period: soon'), 'file:1  `period` must be a duration'],
  ['traefik', limited('average: -1'), 'file:1  `average` must be a whole number'],
  ['traefik', 'http: {}\n---\nhttp: []', 'file:3  must be a map'],
] as const)('Of %s, %j is refused with its line', (format, text, problem) => {
  const result = importers[format]([{ name: 'file', text }])
  expect(result.kind === 'problems' && result.problems.map(formatImportProblem)).toEqual([
    expect.stringContaining(problem),
  ])
})
