import { request } from 'node:http'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'

export const portalKey = 'a key of portals for the tests of reach'

const base64 = (said: object) => Buffer.from(JSON.stringify(said)).toString('base64url')
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A portal token of acme's that is right, and one that was ended. */
interface Portals {
  readonly right: string
  readonly ended: string
}
/** The credentials of one subject that are tried. */
export const reachCredentials = ['a portal token', 'its own key', 'a token with subjects'] as const

/** Credentials that are nearly right, by whose: with what they say changed, or over. Each is a 401. */
export const forged: readonly (readonly [
  (typeof reachCredentials)[number],
  string,
  (portals: Portals) => Record<string, string>,
])[] = [
  [
    'a portal token',
    'names bolt under its signature',
    ({ right }) => bearer(right.replace(/\.[^.]*\./, `.${base64({ sub: 'bolt' })}.`)),
  ],
  ['a portal token', 'was ended', ({ ended }) => bearer(ended)],
  ...['acme-ended-key', 'ACME-KEY', 'acme-ke', 'acme-keyy', sha256('acme-key'), 'acme-a'].map(
    (key) => ['its own key', `is ${key.slice(0, 16)}`, () => ({ 'x-api-key': key })] as const,
  ),
  ...['past-token', 'LIMITED-TOKEN', 'limited-toke', 'limited-tokenn', sha256('limited-token'), 'limited'].map(
    (token) => ['a token with subjects', `is ${token.slice(0, 16)}`, () => bearer(token)] as const,
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
