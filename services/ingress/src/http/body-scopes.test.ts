import { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, it } from 'vitest'
import { createBodyPointers, mayBeJson, valuesOfBody } from './body-scopes.ts'
import { parseJson } from './json-body.ts'
import { createScopeReader } from './named-scopes.ts'

const policy = requirePolicy(
  `
version: 1
limits:
  per-phone: { algorithm: fixed_window, size: 5, window: 1d, by: ["body:/phone"] }
  per-item: { algorithm: fixed_window, size: 5, window: 1d, by: ["body:/items/0/id", "body:/phone", subject] }
  other: { algorithm: fixed_window, size: 5, window: 1d }
plans: { free: { limits: [other] } }
routes:
  - { match: "POST /codes", limits: [per-phone] }
  - { match: "POST /items", limits: [per-phone, per-item] }
  - { match: "GET /items" }
subjects: { acme: { plan: free } }
`,
  'weir.yaml',
)
const readScopes = createScopeReader(policy)

function countedBy(text: string | Buffer, pointers = ['/phone', '/items/0/id']) {
  const [route] = policy.routes
  if (route === undefined) throw new Error('no route')
  const body = valuesOfBody(parseJson(Buffer.from(text)), pointers)
  return Object.fromEntries(readScopes({ route, body }) ?? [])
}

it('a body is read only where limits of the request count by it, for what those name', () => {
  const pointers = createBodyPointers(policy, createLimitResolver(policy))
  const acme = policy.subjects.get('acme')
  if (acme === undefined) throw new Error('no subject')
  const found = policy.routes.map((route) => pointers(acme, route))
  expect(found).toEqual([['/phone'], ['/phone', '/items/0/id'], undefined])
  const plain = createBodyPointers(requirePolicy('version: 1', 'weir.yaml'), () => {
    throw new Error('looked for limits')
  })
  expect(policy.routes.map((route) => plain(acme, route))).toEqual([undefined, undefined, undefined])
})

it.each([
  ['{"phone":"+1", "items":[{"id":7}]}', { 'body:/phone': '+1', 'body:/items/0/id': '7' }],
  ['{"ph\\u006fne":"+1"}', { 'body:/phone': '+1' }],
  ['{"phone":1.0}', { 'body:/phone': '1' }],
  ['{"phone":true}', { 'body:/phone': 'true' }],
  ['{"phone":""}', { 'body:/phone': '' }],
  // What readers could take for several values, and what is no text, number or boolean.
  ['{"phone":"+1","phone":"+2"}', {}],
  ['{"phone":"+1","Phone":"+2","items":[{"id":"a"}]}', { 'body:/items/0/id': 'a' }],
  ['{"phone":["+1"]}', {}],
  ['{"phone":null}', {}],
  ['{"__proto__":{"phone":"+1"}}', {}],
  ['{"phone":"+1"', {}],
  ['\ufeff{"phone":"+1"}', {}],
  ['"+1"', {}],
  ['', {}],
])('of %s limits count by %j', (text, values) => {
  expect(countedBy(text)).toEqual(values)
})

it('a long value is counted by its hash', () => {
  const [one, other] = ['a', 'b'].map((end) => countedBy(`{"phone":"${'1'.repeat(60_000)}${end}"}`)['body:/phone'])
  expect([one?.length, other?.length, one === other]).toEqual([43, 43, false])
})

it.each([
  [undefined, true],
  ['application/json', true],
  ['Application/JSON; charset=utf-8', true],
  ['application/vnd.api+json ;a=b', true],
  ['text/json', true],
  ['multipart/form-data; boundary=json', false],
  ['application/x-www-form-urlencoded', false],
  ['application/jsonl', false],
])('a body of type %s may be JSON: %s', (type, may) => {
  expect(mayBeJson(type)).toBe(may)
})
