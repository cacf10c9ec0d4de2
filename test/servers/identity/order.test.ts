import { describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openIdentity } from './open-identity.ts'

countAttempts(
  'Several credentials in one request',
  'the strongest credential applies, and an invalid one never falls back to a weaker one',
)

const address = '127.0.0.1'
const acme = { who: 'acme on pro', keyId: 'k1', address }
const unauthenticated = { who: 'unauthenticated', address }
/** Everything that is weaker than a key is allowed, and from this very address. */
const generous = '{ trustedHeaders: { from: [127.0.0.1], subject: x-weir-subject, plan: free }, anonymous: free }'

describe('an API key', () => {
  it('is taken from the headers of the policy, in its order, and of Authorization as a Bearer', async () => {
    const { ask, replaceIdentity } = await openIdentity('{}')
    const bearer = { authorization: 'bEaReR  acme-key ' }
    expect(await ask({ headers: bearer })).toEqual({ ...acme, carriedIn: 'header authorization' })
    expect(await ask({ headers: { 'X-Api-Key': 'acme-key' } })).toEqual({ ...acme, carriedIn: 'header x-api-key' })
    expect(await ask({ headers: { authorization: 'Bearer wrong', 'x-api-key': 'acme-key' } })).toEqual(unauthenticated)
    expect(await ask({ headers: { authorization: 'Basic dTpw', 'x-api-key': 'acme-key' } })).toMatchObject(acme)
    replaceIdentity('{ keyHeaders: [x-token, authorization] }')
    expect(await ask({ headers: { 'x-api-key': 'acme-key' } })).toEqual(unauthenticated)
    expect(await ask({ headers: { 'x-token': 'wrong', ...bearer } })).toEqual(unauthenticated)
    expect(await ask({ headers: { 'x-token': 'acme-key', authorization: 'Bearer wrong' } })).toMatchObject(acme)
  })

  it('that has expired is a wrong key, to the millisecond', async () => {
    const { ask, time } = await openIdentity(generous)
    expect(await ask({ headers: { 'x-api-key': 'old-key' } })).toEqual(unauthenticated)
    time.ms = Date.parse('2026-11-21T11:59:58.999Z')
    expect(await ask({ headers: { 'x-api-key': 'old-key' } })).toMatchObject({ who: 'acme on pro', keyId: 'k0' })
  })

  it('that is wrong is never replaced by a trusted header or the address', async () => {
    const { ask } = await openIdentity(generous)
    const trusted = { 'x-weir-subject': 'partner' }
    expect(await ask({ headers: trusted })).toMatchObject({ who: 'partner on free' })
    expect(await ask({ headers: { ...trusted, 'x-api-key': 'wrong' } })).toEqual(unauthenticated)
    expect(await ask({ headers: { ...trusted, authorization: 'Bearer' } })).toEqual(unauthenticated)
    expect(await ask({ headers: { 'x-api-key': 'wrong' } })).toEqual(unauthenticated)
  })

  it('in the query is unauthenticated unless the policy names the parameter, and comes after the headers', async () => {
    const { ask, replaceIdentity } = await openIdentity('{ anonymous: free }')
    const asAddress = { who: 'ip:127.0.0.1 on free', address }
    expect(await ask({ url: '/?api_key=acme-key' })).toEqual(asAddress)
    replaceIdentity('{ keyQuery: api_key, anonymous: free }')
    expect(await ask({ url: '/?a=b&api%5Fkey=acme%2Dkey' })).toEqual({ ...acme, carriedIn: 'query api_key' })
    expect(await ask({ url: '/?api_key=acme-key&api_key=acme-key' })).toEqual(unauthenticated)
    expect(await ask({ url: '/?api_key=acme-key', headers: { 'x-api-key': 'wrong' } })).toEqual(unauthenticated)
    expect(await ask({ url: '/?api_key=' })).toEqual(unauthenticated)
    expect(await ask({ url: '/?other=acme-key' })).toEqual(asAddress)
  })
})

describe('a trusted header', () => {
  const identity = (rest = '') =>
    `{ trustedHeaders: { from: [127.0.0.2, "::1"], subject: x-user, planHeader: x-plan${rest} }, trustedProxies: [127.0.0.3] }`
  const from = '127.0.0.2'

  it('names a subject of the policy, or one on the plan that is named with it, or on the plan for all', async () => {
    const { ask, replaceIdentity } = await openIdentity(identity(', plan: free'))
    const who = async (headers: Record<string, string>) => (await ask({ from, headers })).who
    expect(await who({ 'x-user': 'acme', 'x-plan': 'free' })).toBe('acme on pro')
    expect(await who({ 'x-user': 'partner', 'x-plan': 'pro' })).toBe('partner on pro')
    expect(await who({ 'x-user': 'partner', 'x-plan': 'gold' })).toBe('partner on free')
    expect(await who({ 'x-user': 'partner' })).toBe('partner on free')
    expect((await ask({ from: '::1', headers: { 'x-user': 'partner' } })).who).toBe('partner on free')
    replaceIdentity(identity())
    expect(await who({ 'x-user': 'partner' })).toBe('unauthenticated')
    expect(await who({ 'x-user': 'partner', 'x-plan': 'pro' })).toBe('partner on pro')
  })

  it('forged by any other peer is ignored, whatever that peer says of its address', async () => {
    const { ask } = await openIdentity(identity(', plan: free'))
    for (const forger of ['127.0.0.1', '127.0.0.3']) {
      const headers = { 'x-user': 'acme', 'x-forwarded-for': '127.0.0.2', forwarded: 'for=127.0.0.2' }
      expect((await ask({ from: forger, headers })).who).toBe('unauthenticated')
    }
  })

  it.each([
    ['comes twice', ['acme', 'acme']],
    ['comes twice in one line', 'acme, partner'],
    ['names an address', 'ip:192.0.2.1'],
    ['names the unauthenticated', '_unauthenticated'],
    ['is too long', 'a'.repeat(256)],
    ['has a tab', 'a\tb'],
  ])('is refused when it %s, and the caller does not become anonymous', async (_, value) => {
    const { ask, replaceIdentity } = await openIdentity(identity(', plan: free'))
    replaceIdentity(`${identity(', plan: free').slice(0, -1)}, anonymous: free }`)
    expect((await ask({ from, headers: { 'x-user': value } })).who).toBe('unauthenticated')
    expect((await ask({ from, headers: { 'x-user': '' } })).who).toBe('ip:127.0.0.2 on free')
  })
})

describe('a caller without a credential', () => {
  it('is its address on the plan for such callers, IPv6 by its /64, and refused without that plan', async () => {
    const { ask, replaceIdentity } = await openIdentity('{ anonymous: free }')
    expect(await ask()).toEqual({ who: 'ip:127.0.0.1 on free', address })
    expect(await ask({ from: '::1' })).toEqual({ who: 'ip:::/64 on free', address: '::/64' })
    replaceIdentity('{}')
    expect(await ask()).toEqual(unauthenticated)
  })
})
