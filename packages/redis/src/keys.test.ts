import type { ScopePart } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import { buildLimit } from '@weir/core/limits/testing/build-limit.ts'
import { expect, test } from 'vitest'
import { blockKey, countKeys, limitKey, markerKey, scopeText, settlementKey, tallyKey } from './keys.ts'

const limitBy = (by: readonly ScopePart[], name = 'minute') => buildLimit({ name, by })

const values: ScopeValues = {
  subject: 'acme',
  keyId: 'k1',
  ip: '2001:db8::/64',
  route: 'GET /v1/users/:id',
  method: 'GET',
  named: new Map([
    ['header:x-tenant', 'a:b'],
    ['header:x-area', 'eu'],
    ['claim:org', '7'],
  ]),
}

test.each<[string, ScopePart[], string]>([
  ['a subject', [{ kind: 'subject' }], 'weir:1:{acme}:minute'],
  ['a key is in its subject’s slot', [{ kind: 'key' }], 'weir:1:{acme}:minute:key=k1'],
  ['an address alone is the tag', [{ kind: 'ip' }], 'weir:1:{ip%3A2001%3Adb8%3A%3A%2F64}:minute'],
  ['everybody', [{ kind: 'global' }], 'weir:1:{_global}:minute'],
  ['a route for everybody', [{ kind: 'route' }], 'weir:1:{_global}:minute:route=GET%20%2Fv1%2Fusers%2F%3Aid'],
  ['an address of a subject', [{ kind: 'ip' }, { kind: 'subject' }], 'weir:1:{acme}:minute:ip=2001%3Adb8%3A%3A%2F64'],
  [
    'named parts, in an order of their own, an absent one empty',
    [
      { kind: 'query', name: 'q' },
      { kind: 'header', name: 'x-tenant' },
      { kind: 'header', name: 'x-area' },
      { kind: 'method' },
      { kind: 'subject' },
      { kind: 'claim', name: 'org' },
      { kind: 'path', name: 'id' },
    ],
    'weir:1:{acme}:minute:method=GET:header.x-area=eu:header.x-tenant=a%3Ab:query.q=:path.id=:claim.org=7',
  ],
])('%s', (_, by, key) => {
  expect(limitKey(limitBy(by), values)).toBe(key)
  expect(limitKey(limitBy([...by].reverse()), values)).toBe(key)
})

test('the text of a scope cannot pass for a part of the key', () => {
  const limit = limitBy([{ kind: 'subject' }, { kind: 'header', name: 'a' }])
  const named = new Map([['header:a', 'x:header.a=y}']])
  const key = limitKey(limit, { ...values, subject: 'a}:minute:{b', named })
  expect(key).toBe('weir:1:{a%7D%3Aminute%3A%7Bb}:minute:header.a=x%3Aheader%2Ea%3Dy%7D')
})

test('long texts make short keys, and different ones different keys', () => {
  const limit = limitBy([{ kind: 'subject' }, { kind: 'header', name: 'a' }])
  const keyOf = (header: string) => limitKey(limit, { ...values, named: new Map([['header:a', header]]) })
  const long = '{'.repeat(100_000)
  expect(keyOf(long).length).toBeLessThan(250)
  expect(keyOf(`${long}1`)).not.toBe(keyOf(`${long}2`))
  expect(keyOf(long)).toBe(keyOf(long))
})

test('editing a limit keeps its key', () => {
  const limit = limitBy([{ kind: 'subject' }])
  expect(limitKey({ ...limit, size: 9, span: { kind: 'period', unit: 'day' } }, values)).toBe(limitKey(limit, values))
})

test('keys stay right when more subjects were seen than are kept', () => {
  const limit = limitBy([{ kind: 'ip' }])
  for (let at = 0; at < 25_000; at += 1) limitKey(limit, { ...values, ip: `10.0.${at >> 8}.${at & 255}` })
  expect(limitKey(limit, { ...values, ip: '10.0.0.1' })).toBe('weir:1:{ip%3A10%2E0%2E0%2E1}:minute')
})

test('the key of a block is that of its count with an ending that no scope can spell', () => {
  expect(blockKey(limitBy([{ kind: 'subject' }]), values)).toBe('weir:1:{acme}:minute:blocked')
  const scoped = limitBy([{ kind: 'subject' }, { kind: 'method' }])
  expect(blockKey(scoped, { ...values, method: 'x:blocked' })).toBe('weir:1:{acme}:minute:method=x%3Ablocked:blocked')
})

test('an idempotency key may be any text, belongs to its subject, and collides with no limit', () => {
  expect(markerKey({ subject: 'acme' }, 'order-1')).toMatch(/^weir:1:\{acme\}:_once:[\w-]{43}$/)
  expect(markerKey({ subject: 'acme' }, 'order-1')).not.toBe(markerKey({ subject: 'globex' }, 'order-1'))
  expect(markerKey({ subject: 'acme' }, ' \n}{'.repeat(60)).length).toBe(markerKey({ subject: 'acme' }, 'x').length)
})

test('where a limit counts is found from what is known of the scope', () => {
  const known = { subject: 'acme', route: 'GET /v1/users/:id' }
  const by = (...kinds: ('subject' | 'ip' | 'route' | 'method' | 'global')[]) =>
    countKeys(limitBy(kinds.map((kind) => ({ kind }))), known)
  expect(by('subject', 'route')).toEqual({
    kind: 'key',
    key: limitKey(limitBy([{ kind: 'subject' }, { kind: 'route' }]), values),
  })
  expect(by('global')).toEqual({ kind: 'key', key: 'weir:1:{_global}:minute' })
  expect(by('ip')).toEqual({ kind: 'unknown' })
  const several = by('subject', 'route', 'method')
  expect(several).toMatchObject({ kind: 'several', pattern: 'weir:1:{acme}:minute:*' })
  const isCount = (key: string) => several.kind === 'several' && several.isCount(`weir:1:{acme}:minute:${key}`)
  const route = 'route=GET%20%2Fv1%2Fusers%2F%3Aid'
  expect([`${route}:method=GET`, `route=x:method=GET`, `${route}:method=GET:blocked`].map(isCount)).toEqual([
    true,
    false,
    false,
  ])
})

test('the scope of a key is read back as it was', () => {
  const limit = limitBy([{ kind: 'subject' }, { kind: 'route' }, { kind: 'header', name: 'x-tenant' }])
  expect(scopeText(limitKey(limit, values))).toBe('route=GET /v1/users/:id, header.x-tenant=a:b')
  expect(scopeText(limitKey(limitBy([{ kind: 'ip' }]), values))).toBe('')
})

test.each(['acme', '_domain', 'a b'.repeat(85), `_${'x'.repeat(200)}`])(
  '%s has all its keys in one slot',
  (subject) => {
    const scope = { ...values, subject }
    const limits = [limitBy([{ kind: 'subject' }])]
    const idempotency = { key: 'order-1', fingerprint: '' }
    const keys = [
      ...limits.map((limit) => limitKey(limit, scope)),
      markerKey({ subject }, 'order-1'),
      settlementKey({ subject }, 'd1'),
      tallyKey({ scope, limits, idempotency } as unknown as Parameters<typeof tallyKey>[0]),
    ]
    expect(new Set(keys.map((key) => /\{.*}/.exec(key ?? '')?.[0])).size).toBe(1)
  },
)
