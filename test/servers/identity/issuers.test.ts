import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { openIdentity } from './open-identity.ts'
import { openIssuer } from './open-issuer.ts'

countAttempts('Issuers of tokens', 'keys come only from the issuer, at a limited rate, and no failure admits a token')

async function openBoth({ allowPrivate = true, host }: { allowPrivate?: boolean; host?: string } = {}) {
  const issuer = await openIssuer()
  const jwksUrl = host === undefined ? issuer.jwksUrl : `https://${host}:${issuer.port}/keys`
  const weir = await openIdentity(
    `{ jwt: [{ issuer: "${issuer.url}", jwksUrl: "${jwksUrl}", allowPrivate: ${allowPrivate} }] }`,
  )
  const token = (claims = {}) => issuer.token(weir.time.ms, { claims })
  const who = async (given: string) => (await weir.ask({ headers: { authorization: `Bearer ${given}` } })).who
  return { ...weir, issuer, token, who }
}

/** Beyond the time that an answer of an issuer is remembered, and between two questions to it. */
const laterMs = 61_000

const gatewayTimeouts = [
  ['nginx/weir.conf', /proxy_read_timeout (\d+)s;/],
  ['haproxy/haproxy.cfg', /^listen weir$[\s\S]*?^ {2}timeout server (\d+)s$/m],
  ['envoy/envoy.yaml', /cluster: weir, timeout: (\d+)s/],
] as const

/** As docs/integrations has them. */
async function shortestGatewayTimeoutMs(): Promise<number> {
  const folder = join(import.meta.dirname, '../../../docs/integrations')
  const seconds = gatewayTimeouts.map(async ([path, timeout]) => {
    const [, said] = timeout.exec(await readFile(join(folder, path), 'utf8')) ?? []
    return Number(said)
  })
  return Math.min(...(await Promise.all(seconds))) * 1_000
}

describe("an issuer's keys", () => {
  it('are fetched again when a token names a new one, but once in ten seconds whatever tokens name', async () => {
    const { issuer, token, who, time } = await openBoth()
    const before = await token()
    expect(await who(before)).toBe('acme on pro')
    await issuer.rotate()
    const after = await token()
    expect(await who(after)).toBe('unauthenticated') // too soon after the first question
    time.ms += laterMs
    expect([await who(after), await who(before), issuer.state.asked]).toEqual(['acme on pro', 'acme on pro', 2])
    for (let n = 0; n < 30; n += 1) {
      const header = { kid: `guess ${n}` }
      expect(await who(await issuer.token(time.ms, { header }))).toBe('unauthenticated')
    }
    expect(issuer.state.asked).toBe(2)
  })

  it('are fetched once for many first tokens that come together', async () => {
    const { issuer, token, who } = await openBoth()
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, n) => token({ jti: `${n}` })))
    expect(new Set(await Promise.all(tokens.map(who)))).toEqual(new Set(['acme on pro']))
    expect(issuer.state.asked).toBe(1)
  })

  it('that were withdrawn verify nothing any more', async () => {
    const { issuer, token, who, time } = await openBoth()
    const before = await token()
    expect(await who(before)).toBe('acme on pro')
    await issuer.rotate({ withdraw: true })
    time.ms += 601_000
    await expect.poll(() => who(before), { timeout: 20_000 }).toBe('acme on pro') // refreshed behind this request
    await expect.poll(() => issuer.state.asked, { timeout: 20_000 }).toBe(2)
    time.ms += laterMs
    expect(await who(before)).toBe('unauthenticated')
  })

  it('are kept for a day while the issuer is down, and no longer', async () => {
    const { issuer, who, time, authenticator } = await openBoth()
    const lasting = await issuer.token(time.ms, { claims: { exp: time.ms / 1_000 + 1_000_000 } })
    expect(await who(lasting)).toBe('acme on pro')
    issuer.state.behaviour = 'down'
    for (let hour = 1; hour <= 23; hour += 1) {
      time.ms += 3_600_000
      expect(await who(lasting)).toBe('acme on pro')
    }
    await expect.poll(() => authenticator.counters.keyFetchesFailed, { timeout: 20_000 }).toBe(23)
    time.ms += 2 * 3_600_000
    expect(await who(lasting)).toBe('unsure')
    issuer.state.behaviour = 'keys'
    time.ms += 11_000
    expect(await who(lasting)).toBe('acme on pro')
  })

  it.each(['redirect', 'huge', 'hang', 'silent', 'down'] as const)(
    'that cannot be had (%s) leave it open who calls, which is no guess, and are asked for again',
    async (behaviour) => {
      const { issuer, token, who, time, authenticator } = await openBoth()
      issuer.state.behaviour = behaviour
      const given = await token()
      expect(await who(given)).toBe('unsure')
      await expect.poll(() => authenticator.counters.keyFetchesFailed, { timeout: 20_000 }).toBe(1)
      expect([issuer.state.asked, authenticator.counters.wrong]).toEqual([1, 0])
      if (behaviour === 'huge') {
        await expect.poll(() => issuer.state.bytesSent, { timeout: 20_000 }).toBeGreaterThan(0)
        expect(issuer.state.bytesSent).toBeLessThan(20_000_000)
      }
      issuer.state.behaviour = 'keys'
      time.ms += 11_000
      expect(await who(given)).toBe('acme on pro')
    },
  )

  it.each(['127.0.0.1', 'localhost', 'localhost.', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1'])(
    'are never asked for at %s without allowPrivate: not even a connection is opened',
    async (host) => {
      const { token, who, authenticator, issuer } = await openBoth({ allowPrivate: false, host })
      expect(await who(await token())).toBe('unsure')
      expect([authenticator.counters.keyFetchesFailed, issuer.state.connections]).toEqual([1, 0])
    },
  )

  it('never hold a request for as long as a gateway waits for Weir, and serve the next request when they come', async () => {
    const { issuer, token, who, authenticator } = await openBoth()
    const waited = async (given: string) => {
      const startedMs = performance.now()
      const found = await who(given)
      expect(performance.now() - startedMs).toBeLessThan(await shortestGatewayTimeoutMs())
      return found
    }
    issuer.state.behaviour = 'silent'
    const [first, second] = [await token(), await token({ jti: '2' })]
    expect(await Promise.all([waited(first), waited(second), waited(first)])).toEqual(['unsure', 'unsure', 'unsure'])
    expect(await waited(second)).toBe('unsure')
    issuer.answerLate()
    await expect.poll(() => who(first), { timeout: 2_000 }).toBe('acme on pro')
    expect([issuer.state.asked, authenticator.counters.wrong]).toEqual([1, 0])
  })

  it.each(['silent', 'down'] as const)(
    'among which a new one may be while the issuer is %s leave it open who calls with that, and known ones go on to serve',
    async (behaviour) => {
      const { issuer, token, who, time, authenticator } = await openBoth()
      const before = await token()
      expect(await who(before)).toBe('acme on pro')
      await issuer.rotate()
      const after = await token()
      issuer.state.behaviour = behaviour
      time.ms += laterMs
      expect([await who(after), await who(before), authenticator.counters.wrong]).toEqual(['unsure', 'acme on pro', 0])
      issuer.state.behaviour = 'keys'
      issuer.answerLate()
      time.ms += 11_000
      await expect.poll(() => who(after), { timeout: 20_000 }).toBe('acme on pro')
    },
  )
})
