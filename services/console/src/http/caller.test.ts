import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { createPortalTokens } from '@weir/identity/portal-tokens.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { entitiesOf } from '@weir/policy/state/entities-of.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import { describe, expect, it } from 'vitest'
import { createCallerFinder } from './caller.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const nowMs = Date.parse('2026-11-21T12:00:00Z')
const key = (name: string, more = '') => `keys: [{ sha256: ${sha256(`${name}-key`)}, id: ${name}-1${more} }]`
const policyOf = (identity = '{}') =>
  requirePolicy(
    `version: 1
identity: ${identity}
plans: { free: { limits: [] }, open: { limits: [], selfService: true } }
subjects:
  acme: { plan: open, ${key('acme')} }
  bolt: { plan: free, ${key('bolt')} }
  cargo: { plan: free, selfService: true, ${key('cargo')} }
  dart: { plan: open, selfService: false, ${key('dart')} }
  ended: { plan: open, ${key('ended', ', expires: "2026-11-21T11:59:59Z"')} }
tokens:
  support: { sha256: ${sha256('support')}, scopes: [usage] }
  partner: { sha256: ${sha256('partner')}, scopes: [usage], subjects: [acme, bolt, gone] }
  orphan: { sha256: ${sha256('orphan')}, scopes: [usage], subjects: [gone] }
  past: { sha256: ${sha256('past')}, scopes: [usage], expires: "2026-11-21T12:00:00Z" }
  later: { sha256: ${sha256('later')}, scopes: [usage], expires: "2026-11-21T12:00:00.001Z" }
`,
    'weir.yaml',
  )

const portalKey = 'a key of at least thirty-two characters'

function finder(policy = policyOf()) {
  let elapsedMs = 0
  const find = createCallerFinder({
    portalKey: () => portalKey,
    rootSha256: () => sha256('root'),
    policy: () => policy,
    nowMs: () => nowMs,
    elapsedMs: () => elapsedMs,
  })
  const ask = async (headers: Record<string, string>, remoteAddress = '198.51.100.1') => {
    const found = await find(headers, { headers, socket: { remoteAddress } as Socket })
    if (found.kind === 'refused') return [found.problem.status, found.retryAfterS]
    return [found.caller.by, found.caller.reach.subjects]
  }
  const reachOf = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const found = await find(headers, { headers, socket: {} as Socket })
    return found.kind === 'refused' ? undefined : found.caller.reach
  }
  const bearer = (token: string, address?: string) => ask({ authorization: `Bearer ${token}` }, address)
  return { ask, bearer, reachOf, wait: (ms: number) => (elapsedMs += ms) }
}

describe('the reach of a credential', async () => {
  it('of the environment’s token and of tokens without subjects is everybody', async () => {
    const { bearer } = finder()
    expect([await bearer('root'), await bearer('support')]).toEqual([
      ['root', undefined],
      ['support', undefined],
    ])
  })

  it('of a token with subjects is those that there are; without one left it is no token', async () => {
    const { bearer } = finder()
    expect([await bearer('partner'), await bearer('orphan')]).toEqual([
      ['partner', ['acme', 'bolt']],
      [401, undefined],
    ])
  })

  it.each([
    '{ unknown: free }',
    '{ jwt: [{ issuer: "https://a.example", jwksUrl: "https://a.example/jwks", plan: free }] }',
    '{ jwt: [{ issuer: "https://a.example", jwksUrl: "https://a.example/jwks", planClaim: plan }] }',
    '{ trustedHeaders: { from: ["192.0.2.1"], subject: x-subject, plan: free } }',
    '{ trustedHeaders: { from: ["192.0.2.1"], subject: x-subject, planHeader: x-plan } }',
  ])('of a token names subjects that the policy does not list where it lets such in: %s', async (identity) => {
    expect(await finder(policyOf(identity)).bearer('orphan')).toEqual(['orphan', ['gone']])
  })

  it('of a key is its own subject, if its plan says selfService, and the subject’s own word wins', async () => {
    const { bearer, ask } = finder()
    const names = ['acme', 'bolt', 'cargo', 'dart', 'ended', 'nobody']
    expect(await Promise.all(names.map((name) => bearer(`${name}-key`)))).toEqual([
      ['key acme-1', ['acme']],
      [401, undefined],
      ['key cargo-1', ['cargo']],
      [401, undefined],
      [401, undefined],
      [401, undefined],
    ])
    expect(await ask({ 'x-api-key': 'acme-key' })).toEqual(['key acme-1', ['acme']])
  })

  it.each([
    ['{}', true, false],
    ['{ trustedHeaders: { from: ["192.0.2.1"], subject: x-subject, plan: free, parentHeader: x-parent } }', true, true],
  ])('of a key covers a tree where there may be one: %s', async (identity, ofAcme, ofRed) => {
    const state = new PolicyState()
    const file = entitiesOf(
      `version: 1
identity: ${identity}
plans: { free: { limits: [], selfService: true } }
subjects: { acme: { plan: free, ${key('acme')} }, red: { plan: free, parent: acme, ${key('red')} } }
`,
      'weir.yaml',
    )
    if (file.kind === 'entities') state.load(file.entities)
    const { reachOf } = finder(state.policy)
    expect([(await reachOf('acme-key'))?.hasTrees, (await reachOf('red-key'))?.hasTrees]).toEqual([ofAcme, ofRed])
  })

  it('ends with its token', async () => {
    const { bearer } = finder()
    expect([await bearer('past'), await bearer('later')]).toEqual([
      [401, undefined],
      ['later', undefined],
    ])
  })
})

describe('a caller with', async () => {
  it('two credentials is refused, and a token is none in X-API-Key', async () => {
    const { ask } = finder()
    expect(await ask({ authorization: 'Bearer root', 'x-api-key': 'acme-key' })).toEqual([400, undefined])
    expect(await ask({ authorization: 'Basic cm9vdDpyb290', 'x-api-key': 'acme-key' })).toEqual([400, undefined])
    expect(await Promise.all([{ 'x-api-key': 'root' }, { 'x-api-key': 'support' }, {}].map((one) => ask(one)))).toEqual(
      Array(3).fill([401, undefined]),
    )
  })

  it('a hundred wrong keys is refused with 429 for a minute, and no right credential is, however new it is here', async () => {
    const { bearer, ask, wait } = finder(policyOf('{ trustedProxies: [192.0.2.1] }'))
    for (let guess = 0; guess < 100; guess += 1) expect(await bearer(`guess-${guess}`)).toEqual([401, undefined])
    const wrong = ['guess', 'weir_portal_guess', 'dart-key']
    for (const one of wrong) expect(await bearer(one)).toEqual([429, 60])
    const { sign } = createPortalTokens(() => portalKey)
    const portal = (await sign({ subject: 'acme', after: '' }, nowMs, nowMs + 60_000)) ?? ''
    const right = ['acme-key', portal, 'support', 'root']
    for (const one of right) expect((await bearer(one))[0]).toMatch(/acme|support|root/)
    const behind = (client: string) => ask({ 'x-api-key': 'guess', 'x-forwarded-for': client }, '192.0.2.1')
    expect([await behind('198.51.100.1'), await behind('198.51.100.2')]).toEqual([
      [429, 60],
      [401, undefined],
    ])
    wait(60_000)
    expect(await bearer('guess')).toEqual([401, undefined])
  })
})
