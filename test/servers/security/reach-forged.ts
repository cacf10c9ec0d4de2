import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { SignJWT } from 'jose'
import type { reachCredentials } from '../../support/reach-table.ts'

export const portalKey = 'a key of portals for the tests of reach'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const base64 = (said: object) => Buffer.from(JSON.stringify(said)).toString('base64url')
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A portal token of acme's as Weir makes it, but for what is named. */
async function seal({ alg = 'HS256', by = portalKey, audience = 'weir-portal', forS = 3_600, after = '' }) {
  const token = new SignJWT(after === '' ? {} : { after }).setProtectedHeader({ alg }).setSubject('acme')
  token.setAudience(audience).setIssuedAt()
  token.setExpirationTime(Math.floor(Date.now() / 1_000) + forS)
  return `weir_portal_${await token.sign(new TextEncoder().encode(by))}`
}

/** A portal token of acme's that is right, and one that was ended. */
interface Portals {
  readonly right: string
  readonly ended: string
}
type Forge = (portals: Portals) => Promise<Record<string, string>>
const forgedPortals: readonly (readonly [string, (portals: Portals) => Promise<string> | string])[] = [
  ['names bolt under its signature', ({ right }) => right.replace(/\.[^.]*\./, `.${base64({ sub: 'bolt' })}.`)],
  ['has no signature', () => `weir_portal_${base64({ alg: 'none' })}.${base64({ sub: 'bolt' })}.`],
  ['is signed by HS512', () => seal({ alg: 'HS512' })],
  ['is signed by an old key', () => seal({ by: 'a key of portals that was replaced' })],
  ['is for another audience', () => seal({ audience: 'weir' })],
  ['has expired', () => seal({ forS: -1 })],
  ['was ended', ({ ended }) => ended],
  ['says that it was made before the last end', () => seal({})],
  ['says that it was made after another end', () => seal({ after: '2099-01-01T00:00:00.000Z' })],
]

/** Credentials that are nearly right, by whose: with what they say changed, or over. Each is a 401. */
export const forged: readonly (readonly [(typeof reachCredentials)[number], string, Forge])[] = [
  ...forgedPortals.map(
    ([what, make]) => ['a portal token', what, async (portals: Portals) => bearer(await make(portals))] as const,
  ),
  ...['acme-ended-key', 'ACME-KEY', 'acme-ke', 'acme-keyy', sha256('acme-key'), 'acme-a'].map(
    (key) => ['its own key', `is ${key.slice(0, 16)}`, async () => ({ 'x-api-key': key })] as const,
  ),
  ...['past-token', 'LIMITED-TOKEN', 'limited-toke', 'limited-tokenn', sha256('limited-token'), 'limited'].map(
    (token) => ['a token with subjects', `is ${token.slice(0, 16)}`, async () => bearer(token)] as const,
  ),
]

type Lines = Record<string, string | string[]>
const adminsOf = (name: string) => (name === 'authorization' ? 'Bearer test-admin-token' : 'bolt-key')
/** The header of a credential as two lines. */
const twice = (own: Record<string, string>, inOrder: (own: string, others: string) => string[]): Lines =>
  Object.fromEntries(Object.entries(own).map(([name, value]) => [name, inOrder(value, adminsOf(name))]))

/** What comes with acme's credential, and what the answer must be. */
export const besides: readonly (readonly [string, number, (own: Record<string, string>, cookie: string) => Lines])[] = [
  ['an admin’s cookie', 400, (own, cookie) => ({ ...own, cookie, 'sec-fetch-site': 'same-origin' })],
  [
    'another’s credential in the other header',
    400,
    (own) => ('authorization' in own ? { ...own, 'x-api-key': 'bolt-key' } : { ...own, ...bearer('test-admin-token') }),
  ],
  ['another’s in a second line of its header', 401, (own) => twice(own, (first, second) => [first, second])],
  ['another’s in a line before its header', 401, (own) => twice(own, (second, first) => [first, second])],
]

/** Asks with headers that may have several lines, which `fetch` cannot. */
export async function statusOfLines(url: string, headers: Lines): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  const sent = request(url, { headers, agent: false, timeout: 60_000 }, (response) => {
    response.resume().on('end', () => resolve(response.statusCode))
  })
  sent.on('error', reject).end()
  return promise
}
