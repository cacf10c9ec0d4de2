import { readFile } from 'node:fs/promises'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { formatImportProblem } from './foreign-file.ts'
import { importEnvoy } from './import-envoy.ts'
import { importedText, inShadow } from './imported-policy.ts'

const gateway = 'docs/integrations/envoy-ai-gateway'
const fromRoot = (path: string) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8')

/** The imported routes by path, with what counts beyond; the notes; what `weir check` says of both forms. */
function imported(...texts: string[]) {
  const result = importEnvoy(texts.map((text, at) => ({ name: `${at}.yaml`, text })))
  if (result.kind === 'problems') throw new Error(result.problems.map(formatImportProblem).join('\n'))
  const { policy, notes } = result
  for (const one of [policy, inShadow(policy)])
    expect(parsePolicy(importedText(one, notes), 'weir.yaml')).toMatchObject({ kind: 'policy' })
  const routes = policy.routes.map(({ body }) => [String(body.match).replace('DESCRIPTOR ', ''), body.beyond])
  return { routes, notes: notes.map(({ file, line, kind, what }) => `${file}:${line} ${kind} ${what}`) }
}

const hour = 'rate_limit: { unit: hour, requests_per_unit: 9 }'
const limits = `
domain: rl
descriptors:
- { key: user, ${hour}, descriptors: [{ key: model, ${hour} }, { key: model, value: small, ${hour} }] }
- { key: user, value: "team-*", ${hour} }
- { key: user, value: robot, ${hour} }
- { key: open, rate_limit: { unlimited: true } }
- { key: generic_key, value: all, ${hour} }
- { key: header_match, value: post, ${hour} }
- { key: remote_address, ${hour} }
`
const late = (...actions: string[]) =>
  `virtual_hosts: [{ rate_limits: [{ apply_on_stream_done: true, actions: [${actions.join()}] }] }]`
const header = (key: string) => `{ request_headers: { header_name: x, descriptor_key: ${key} } }`
const beyond = (...texts: string[]) =>
  imported(limits, ...texts).routes.flatMap(([path, one]) => (one === 'charge' ? [path] : []))

test('what Envoy AI Gateway charges at the end of a stream counts beyond its limits', async () => {
  const route = 'httproute/default/envoy-ai-gateway-token-ratelimit/rule/0/match/0/api_example_com'
  const rules = [0, 1, 2].map((at) => `{ key: rule-${at}-match-0, rate_limit: { unit: day, requests_per_unit: 9 } }`)
  const config = `
domain: default/envoy-ai-gateway-token-ratelimit/http
descriptors:
- key: "${route}"
  value: "${route}"
  descriptors: [${rules.join()}]
- { key: requests, ${hour} }
`
  const envoy = (await fromRoot(`${gateway}/envoy.yaml`)).replaceAll('match/0/*', 'match/0/api_example_com')
  const { routes, notes } = imported(config, envoy)
  expect(routes.map(([, one]) => one)).toEqual(['charge', 'charge', 'charge', undefined])
  expect(notes).toEqual([])
})

test('only descriptors with apply_on_stream_done count beyond, each by its keys and by values that are written', () => {
  expect(beyond(late(header('user')))).toEqual(['/rl/user/robot', '/rl/user/team-*', '/rl/user/:user'])
  expect(beyond(late(header('user')).replace('done: true', 'done: false'))).toEqual([])
  expect(beyond(late(header('user'), header('model')))).toEqual([
    '/rl/user/:user/model/small',
    '/rl/user/:user/model/:model',
  ])
  const user = (value: string) => `{ generic_key: { descriptor_key: user, descriptor_value: ${value} } }`
  expect(beyond(late(user('robot')))).toEqual(['/rl/user/robot', '/rl/user/:user'])
  expect(beyond(late(user('team-7')))).toEqual(['/rl/user/team-*', '/rl/user/:user'])
  expect(beyond(late(user('"%REQ(x-user)%"')))).toHaveLength(3)
})

test('actions without a key have that of Envoy, and a limit without units refuses nothing', () => {
  expect(beyond(late('{ generic_key: { descriptor_value: all } }'))).toEqual(['/rl/generic_key/all'])
  expect(beyond(late('{ header_value_match: { descriptor_value: post } }'))).toEqual(['/rl/header_match/post'])
  expect(beyond(late('{ remote_address: {} }'))).toEqual(['/rl/remote_address/:remote_address'])
  expect(imported(limits, late(header('open')))).toMatchObject({ notes: [] })
  expect(beyond(late(header('open')))).toEqual([])
})

test('a file of Envoy that names domains is for these alone, and what it dumps as JSON is read too', () => {
  const dump = (domain: string) =>
    JSON.stringify({
      configs: [{ domain, rate_limits: [{ actions: [{ remote_address: {} }], apply_on_stream_done: true }] }],
    })
  expect(beyond(dump('rl'))).toEqual(['/rl/remote_address/:remote_address'])
  expect(beyond(dump('other'))).toEqual([])
})

test('a late charge that no limit counts is named, as are files of Envoy without any limits', () => {
  const { notes } = imported(limits, late(header('user'), '{ generic_key: { descriptor_value: gold } }'))
  expect(notes).toEqual([
    '1.yaml:1 lost no imported limit has the descriptor user, generic_key=gold, which Envoy charges at the end of a stream',
  ])
  expect(() => imported(late(header('user')))).toThrow(
    '0.yaml:1  is a configuration of Envoy itself; name that of envoyproxy/ratelimit too, which has the limits',
  )
  expect(() => imported(limits, 'virtual_hosts: [{ rate_limits: 7 }]')).toThrow(
    '1.yaml:1  must be a list of rate limits',
  )
  expect(() => imported(limits, 'virtual_hosts: [{ rate_limits: [7] }]')).toThrow(
    '1.yaml:1  must be a rate limit: a map with `actions`',
  )
})
