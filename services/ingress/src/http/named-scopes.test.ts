import { createRouteMatcher, unmatchedRoute } from '@weir/policy/match/match-route.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { describe, expect, it } from 'vitest'
import { createScopeReader, type ScopeSource } from './named-scopes.ts'

const limitBy = (by: string, routes = '[]') =>
  requirePolicy(
    `{ version: 1, limits: { m: { algorithm: fixed_window, size: 1, window: 1m, by: [${by}] } }, routes: ${routes} }`,
    'weir.yaml',
  )

const reader = (policy: Policy) => {
  const read = createScopeReader(policy)
  return (source: Omit<ScopeSource, 'route'>, route = unmatchedRoute) => read({ route, ...source })
}

describe('headers and query parameters', () => {
  const read = reader(limitBy('header:X-Tenant, header:set-cookie, query:q'))

  it('are the named headers, whatever their case was in the policy, and the parameter of the name', () => {
    const headers = { 'x-tenant': 'a', 'x-other': 'b', 'set-cookie': ['c=1', 'd=2'] }
    expect(read({ headers, url: '/x?a=1&%71=ha%6clo+you&b=2&b=3' })).toEqual(
      new Map([
        ['header:x-tenant', 'a'],
        ['header:set-cookie', 'c=1, d=2'],
        ['query:q', 'hallo you'],
      ]),
    )
  })

  it('have no value where a request does not have them', () => {
    expect(read({ headers: {}, url: '/x' })).toEqual(new Map())
    expect(read({ headers: {}, url: '/x?p=1' })?.get('query:q')).toBe('')
    expect(read({})).toEqual(new Map())
  })

  it.each(['q=1&q=1', 'q=2&ph=1&%71=1', 'q=1&q[]=2', 'q=1&+Q=2', 'q=1;q=2', 'a=1;q=2&q=3', 'q=1&q%00x=2'])(
    'have no value where a server may find two: %s',
    (query) => {
      expect(read({ url: `/x?${query}` })?.get('query:q')).toBe('')
      expect(read({ url: `/x?${query.replaceAll(/q|Q|%71/g, 'r')}&q=1` })?.get('query:q')).toBe('1')
    },
  )

  it('of a header that came twice have no value, and with a comma of its own they have', () => {
    const [headers, once] = [{ 'x-tenant': 'a, b' }, ['A', 'x-tenant', 'X-Tenant', 'a, b']]
    const of = (rawHeaders: string[]) => read({ headers, rawHeaders, url: '/' })?.get('header:x-tenant')
    expect([of(once), of([...once, 'x-tenant', 'b'])]).toEqual(['a, b', ''])
  })

  it('are not looked at when no limit counts by anything named', () => {
    expect(reader(limitBy('subject'))({ headers: { a: '1' }, url: '/x?a=1' })).toBeUndefined()
  })
})

describe('attributes', () => {
  it('are those that some limit counts by, numbers as text, and nothing that objects have of their own', () => {
    const read = reader(limitBy('subject, attribute:size, attribute:toString'))
    expect(read({ attributes: { size: 5, other: 'x' } })).toEqual(new Map([['attribute:size', '5']]))
  })
})

describe('parameters of the path', () => {
  const policy = limitBy('path:user, path:file', '[{ match: "GET /v1/users/:user/*" }, { match: "GET /v1/:file" }]')
  const match = createRouteMatcher(policy.routes)
  const read = reader(policy)
  const ofPath = (path: string) => read({ path }, match('GET', path))

  it.each([
    ['/v1/users/ann/a/b', { 'path:user': 'ann' }],
    ['/v1/users/a%20b%C3%A9/', { 'path:user': 'a bé' }],
    ['/v1/users/a%40b', { 'path:user': 'a@b' }],
    ['/v1/users/a@b', { 'path:user': 'a@b' }],
    ['/v1/users/:user', { 'path:user': ':user' }],
    ['/v1/x', { 'path:file': 'x' }],
    ['/other', {}],
  ])('of %s are %j', (path, values) => {
    expect(Object.fromEntries(ofPath(path) ?? [])).toEqual(values)
  })

  it('are short, however long the path is, and different for different paths', () => {
    const [long, other] = [`/v1/${'a'.repeat(20_000)}`, `/v1/${'a'.repeat(20_000)}b`].map((path) =>
      ofPath(path)?.get('path:file'),
    )
    expect([long?.length, other?.length, long === other]).toEqual([43, 43, false])
  })
})

describe('claims', () => {
  const read = reader(limitBy('claim:org, claim:toString'))

  it.each([
    [{ org: 'acme' }, { 'claim:org': 'acme' }],
    [{ org: 7, other: 'x' }, { 'claim:org': '7' }],
    [{ org: true }, { 'claim:org': 'true' }],
    [{ org: ['acme'] }, {}],
    [{ org: { id: 'acme' } }, {}],
    [{ org: null }, {}],
    [{}, {}],
    [undefined, {}],
  ])('of %j are %j', (claims, values) => {
    expect(Object.fromEntries(read({ claims }) ?? [])).toEqual(values)
  })
})

describe('cookies', () => {
  const read = reader(limitBy('cookie:sid'))
  const of = (cookie: string | undefined) => read({ headers: { cookie } })?.get('cookie:sid')

  const twice = ['sid=abc; sid=other', 'sid=a;b=1,sid=b', 'sid=a sid=b', 'sid=a; sid[]=b', 'sid=a; "sid=b"; Sid =c']

  it('are counted by their hash', () => {
    // printf %s abc | openssl sha256 -binary | basenc --base64url
    expect(of('sid=abc')).toBe('ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
  })

  it.each(['sid=abc', 'a=1; sid=abc; b=2', 'a=1;sid="abc"', ' sid = %61bc'])(
    'are one session however they are written: %s',
    (cookie) => {
      expect(of(cookie)).toBe(of('sid=abc'))
    },
  )

  it.each([undefined, '', 'sid=', 'SID=abc', 'xsid=abc', 'sid', 'sid=""', ...twice])(
    'have no value in %s',
    (cookie) => {
      expect(of(cookie)).toBeUndefined()
    },
  )

  it('whose escapes are broken count as they are', () => {
    expect(of('sid=%zz')).not.toBe(of('sid=%yy'))
  })
})

it('A parameter with a verb behind it is counted without the verb', () => {
  const policy = limitBy('path:model', '[{ match: "POST /models/:model:generate" }]')
  const match = createRouteMatcher(policy.routes)
  const read = reader(policy)
  for (const path of ['/models/a%3Ab:generate', '/models/a:b%3Agenerate/']) {
    const route = match('POST', path)
    expect(read({ path }, route)?.get('path:model')).toBe('a:b')
  }
})
