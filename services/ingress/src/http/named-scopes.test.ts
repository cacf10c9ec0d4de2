import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { describe, expect, it } from 'vitest'
import { createAttributeScopes, createRequestScopes } from './named-scopes.ts'

const limitBy = (by: string) =>
  requirePolicy(
    `{ version: 1, limits: { m: { algorithm: fixed_window, size: 1, window: 1m, by: [${by}] } } }`,
    'weir.yaml',
  )

describe('createRequestScopes', () => {
  const read = createRequestScopes(limitBy('header:X-Tenant, header:set-cookie, query:q'))

  it('reads the named headers, whatever their case was in the policy, and the first parameter of the name', () => {
    const headers = { 'x-tenant': 'a', 'x-other': 'b', 'set-cookie': ['c=1', 'd=2'] }
    expect(read(headers, '/x?a=1&q=ha%6clo+you&q=2')).toEqual(
      new Map([
        ['header:x-tenant', 'a'],
        ['header:set-cookie', 'c=1, d=2'],
        ['query:q', 'hallo you'],
      ]),
    )
  })

  it('has no value for a header that a request does not have', () => {
    expect(read({}, '/x')).toEqual(new Map())
    expect(read({}, '/x?p=1')?.get('query:q')).toBe('')
  })

  it('does not look at a request when no limit counts by any of it', () => {
    expect(createRequestScopes(limitBy('subject, attribute:a'))({ a: '1' }, '/x?a=1')).toBeUndefined()
  })
})

describe('createAttributeScopes', () => {
  it('takes what some limit counts by, numbers as text, and nothing that objects have of their own', () => {
    const read = createAttributeScopes(limitBy('subject, attribute:size, attribute:toString'))
    expect(read({ size: 5, other: 'x' })).toEqual(new Map([['attribute:size', '5']]))
    expect(createAttributeScopes(limitBy('subject'))({ size: 5 })).toBeUndefined()
  })
})
