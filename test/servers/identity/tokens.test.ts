import type { JWTPayload } from 'jose'
import { describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openIdentity } from './open-identity.ts'
import { type Issuer, openIssuer } from './open-issuer.ts'

countAttempts('JSON web tokens', 'a valid token authenticates its subject; any other token returns 401')

const entry = ({ url, jwksUrl }: Issuer, rest = 'plan: free') =>
  `{ issuer: "${url}", jwksUrl: "${jwksUrl}", audience: api, allowPrivate: true, ${rest} }`

/** Besides tokens, callers may be trusted and anonymous: nothing wrong may slip down to that. */
async function openBoth(rest?: string) {
  const issuer = await openIssuer()
  const identity = (jwt: string) =>
    `{ jwt: [${jwt}], trustedHeaders: { from: [127.0.0.1], subject: x-user, plan: free }, anonymous: free }`
  const weir = await openIdentity(identity(entry(issuer, rest)))
  const askWith = (token: string) => weir.ask({ headers: { authorization: `Bearer ${token}`, 'x-user': 'partner' } })
  const who = async (token: string) => (await askWith(token)).who
  const token = (claims: JWTPayload = {}) => issuer.token(weir.time.ms, { claims })
  return { ...weir, issuer, identity, askWith, who, token }
}

describe('a token', () => {
  it("makes its caller the policy's subject, or one of the plan it names, or of the issuer's plan", async () => {
    const { askWith, who, token, replaceIdentity, identity, issuer } = await openBoth('planClaim: tier, plan: free')
    const acme = { who: 'acme on pro', carriedIn: 'header authorization', address: '127.0.0.1' }
    expect(await askWith(await token())).toEqual(acme)
    expect(await who(await token({ tier: 'free' }))).toBe('acme on pro')
    expect(await who(await token({ sub: 'auth0|7', tier: 'pro' }))).toBe('auth0|7 on pro')
    expect(await who(await token({ sub: 'auth0|7', tier: 'gold' }))).toBe('auth0|7 on free')
    expect(await who(await token({ sub: 'auth0|7', tier: { plan: 'pro' } }))).toBe('auth0|7 on free')
    replaceIdentity(identity(entry(issuer, 'subjectClaim: client')))
    expect(await who(await token({ client: 'acme' }))).toBe('acme on pro')
    expect(await who(await token({ client: 'initech' }))).toBe('unauthenticated')
  })

  it('is verified once while it is good, at most once a minute, and its caller follows the policy immediately', async () => {
    const { who, token, authenticator, time, replaceIdentity, identity, issuer } = await openBoth()
    const given = await token({ sub: 'partner-7', exp: Math.floor(time.ms / 1_000) + 90 })
    const verified = () => authenticator.counters.tokensVerified
    for (let n = 0; n < 20; n += 1) expect(await who(given)).toBe('partner-7 on free')
    expect(verified()).toBe(1)
    replaceIdentity(identity(entry(issuer, 'plan: pro')))
    expect(await who(given)).toBe('partner-7 on pro')
    time.ms += 59_000
    await who(given)
    expect(verified()).toBe(2)
    time.ms += 2_000
    await who(given)
    expect([verified(), issuer.state.asked]).toEqual([3, 1])
    time.ms += 35_000 // 96 s: beyond its exp and the tolerance, within a minute of the verification
    expect(await who(given)).toBe('unauthenticated')
  })

  it('next to a key in another header lets the key decide', async () => {
    const { ask, token } = await openBoth()
    const headers = { authorization: `Bearer ${await token({ sub: 'partner-7' })}`, 'x-api-key': 'acme-key' }
    expect(await ask({ headers })).toMatchObject({ who: 'acme on pro', keyId: 'k1', carriedIn: 'header x-api-key' })
    expect((await ask({ headers: { ...headers, 'x-api-key': 'wrong' } })).who).toBe('unauthenticated')
  })

  it('is good five seconds beyond its times, as clocks differ', async () => {
    const { who, token, time } = await openBoth()
    const nowS = time.ms / 1_000
    expect(await who(await token({ exp: nowS - 4 }))).toBe('acme on pro')
    expect(await who(await token({ nbf: nowS + 5 }))).toBe('acme on pro')
  })

  it('with an algorithm that the policy does not list is refused, though the issuer has the key', async () => {
    const { who, issuer, time } = await openBoth('algorithms: [ES256], plan: free')
    expect(await who(await issuer.token(time.ms))).toBe('unauthenticated')
  })
})
