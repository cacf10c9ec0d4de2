import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { signAddress } from '@weir/policy/address-token.ts'
import { hashOf as addressHash } from '@weir/policy/contact-targets.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { startConsoleOnKafka } from '../../support/console-stack.ts'
import { countAttempts } from '../../support/count-attempts.ts'

/** The routes of the console that take no token in a header: what they ask for is in the path or in the body. */

const key = 'a key that signs links and portal tokens of these tests'
const contactOf = (subject: string) => ({ email: [`ops@${subject}.example`] })
const subjects = ['acme', 'bolt'] as const
const policy = {
  version: 1,
  plans: { free: { limits: ['minute'], selfService: true } },
  limits: { minute: { algorithm: 'fixed_window', size: 100, window: '1m' } },
  subjects: Object.fromEntries(
    subjects.map((name) => [
      name,
      { plan: 'free', contact: contactOf(name), keys: [{ sha256: sha256(`${name}-key`), id: `${name}-1` }] },
    ]),
  ),
  tokens: { reader: { sha256: sha256('reader-token'), scopes: ['read'] } },
}

const { desk, close } = await startConsoleOnKafka({
  policy,
  environment: { WEIR_PORTAL_KEY: key, WEIR_UNSUBSCRIBE_KEY: key },
})
afterAll(close)

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}
/** By Node's own client: `fetch` sets headers of its own, and no `Host`. */
async function send(asked: string, { headers = {}, body = '' }: Sent = {}) {
  const [method = '', path = ''] = asked.split(' ')
  const { hostname, port } = new URL(desk.environment.WEIR_CONSOLE_URL)
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>()
  const options = { hostname, port, method, path, headers, agent: false, timeout: 60_000 }
  request(options, resolve).on('error', reject).end(body)
  const response = await promise
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}
const everything = async () => (await desk.ask('GET /v1/policy')).body

const hashOf = (subject: string) => addressHash(contactOf(subject).email[0] ?? '')
const linkOf = (subject: string, addressHash = hashOf(subject), by = key) =>
  signAddress([by], 'unsubscribe', { subject, addressHash }) ?? ''
const encoded = (...said: unknown[]) => Buffer.from(JSON.stringify(said)).toString('base64url')

describe('a link to unsubscribe that Weir did not make', () => {
  countAttempts('Links to unsubscribe', 'a 4xx, and no one is unsubscribed; GET on a valid link changes nothing')
  const [payload = '', mac = ''] = linkOf('acme').split('.')
  const bolts = encoded('bolt', hashOf('bolt'))
  const forged: Readonly<Record<string, string>> = {
    'another subject under this signature': `${bolts}.${mac}`,
    'another key': linkOf('acme', hashOf('acme'), 'another key that is as long as the right one'),
    'no signature': payload,
    'an empty signature': `${payload}.`,
    'a signature cut short': `${payload}.${mac.slice(0, 20)}`,
    'a signature that goes on': `${payload}.${mac}AAAA`,
    'a third part': `${payload}.${mac}.${mac}`,
    'a signature in another case': `${payload}.${mac.toLowerCase()}`,
    'a payload in another case': `${payload.toUpperCase()}.${mac}`,
    'the hash of the text in place of its signature': `${payload}.${sha256(payload)}`,
    'a payload that is no JSON': `${Buffer.from("acme' OR 1=1 --").toString('base64url')}.${mac}`,
    'a payload that is an object': `${Buffer.from('{"__proto__":{}}').toString('base64url')}.${mac}`,
    __proto__: '__proto__',
    SQL: encodeURIComponent("' OR 1=1 --"),
    'a path upwards': '..%2Fv1%2Fpolicy',
    'NUL bytes': `${payload}%00.${mac}`,
    'a line break': `${payload}.${mac.slice(0, -1)}%0d%0aX-Forged:%201`,
    'no UTF-8': '%ff%fe',
    'no encoding at all': '%zz',
    'the longest name': 'a'.repeat(4_096),
    'more than the longest name': 'a'.repeat(4_097),
  }

  test.each(Object.keys(forged))('%s', async (name) => {
    const before = await everything()
    for (const to of [
      'POST /unsubscribe',
      'GET /unsubscribe',
      'HEAD /unsubscribe',
      'PUT /unsubscribe',
      'POST /confirm',
      'GET /confirm',
    ]) {
      const { status, headers } = await send(`${to}/${forged[name]}`)
      expect([to, [400, 401, 404, 414].includes(status ?? 0), status]).toEqual([to, true, status])
      expect(headers['x-forged']).toBeUndefined()
    }
    expect(await everything()).toEqual(before)
  })

  test('a portal token of the same key is no link, and a link is no portal token', async () => {
    const { token } = (await desk.ask<{ token: string }>('POST /v1/subjects/acme/portal', {})).body
    for (const text of [token, token.replace('weir_portal_', '')]) {
      expect((await send(`POST /unsubscribe/${text}`)).status).toBe(404)
    }
    for (const text of [linkOf('acme'), `weir_portal_${linkOf('acme')}`]) {
      expect((await send('GET /v1/usage', { headers: { authorization: `Bearer ${text}` } })).status).toBe(401)
    }
  })

  test.each(['GET', 'HEAD'])('a right link changes nothing by %s, whatever its headers say', async (method) => {
    const before = await everything()
    const headers = { 'x-http-method-override': 'POST', 'x-http-method': 'POST', 'x-method-override': 'POST' }
    expect((await send(`${method} /unsubscribe/${linkOf('acme')}?_method=POST`, { headers })).status).toBe(200)
    expect(await everything()).toEqual(before)
  })

  test.each([
    ['of another address', linkOf('acme', '0123456789ab')],
    ['of an address of another subject', linkOf('acme', hashOf('bolt'))],
    ['of no subject', linkOf('none', hashOf('acme'))],
    ['of every object', linkOf('__proto__', hashOf('acme'))],
  ])('a link that is signed and %s changes nothing', async (_, link) => {
    const before = await everything()
    expect((await send(`POST /unsubscribe/${link}`)).status).toBe(200)
    expect(await everything()).toEqual(before)
  })

  test('a body of any size is not read beyond 4 kB', async () => {
    expect((await send(`POST /unsubscribe/${linkOf('acme')}`, { body: 'x'.repeat(100_000) })).status).toBe(413)
    expect(await everything()).not.toHaveProperty('unsubscribed')
  })

  test('the right link takes its own address out, and nobody else’s', async () => {
    expect((await send(`POST /unsubscribe/${linkOf('acme')}`)).status).toBe(200)
    expect(await everything()).toHaveProperty('unsubscribed', { acme: { email: [hashOf('acme')] } })
  })
})

const json = { 'content-type': 'application/json' }
const fromPage = { 'sec-fetch-site': 'same-origin' }
const signIn = (token: unknown, headers: Readonly<Record<string, string>> = fromPage) =>
  send('POST /session', { headers: { ...json, ...headers }, body: JSON.stringify({ token }) })
const cookieOf = ({ headers }: Awaited<ReturnType<typeof send>>) => headers['set-cookie']?.[0]?.split(';')[0] ?? ''
async function openSession(token = 'test-admin-token', headers: Readonly<Record<string, string>> = {}) {
  const answer = await signIn(token, { ...fromPage, ...headers })
  expect(answer.status).toBe(201)
  return { cookie: cookieOf(answer), csrf: String(JSON.parse(answer.text).csrf) }
}

describe('a browser’s session that', () => {
  countAttempts('Sessions of browsers', 'a 4xx without a cookie, and nothing is read or changed')

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another port', { 'sec-fetch-site': 'same-site' }],
    ['an address bar', { 'sec-fetch-site': 'none' }],
    ['a program', {}],
    ['an empty word', { 'sec-fetch-site': '' }],
    ['two words', { 'sec-fetch-site': 'same-origin, cross-site' }],
    ['a name that was bound to this machine', { ...fromPage, host: 'rebound.example.com' }],
    ['a name that begins like this machine', { ...fromPage, host: 'localhost.example.com:80' }],
    ['a forwarded host', { 'sec-fetch-site': 'cross-site', 'x-forwarded-host': 'localhost' }],
  ] as const)('%s opens with the right token', async (_, headers) => {
    const refused = await signIn('test-admin-token', headers)
    expect([refused.status, cookieOf(refused)]).toEqual([403, ''])
  })

  test.each([
    '',
    ' ',
    'nobody',
    'root',
    'reader',
    sha256('reader-token'),
    sha256('test-admin-token'),
    "' OR 1=1 --",
    'acme-key\0',
    'test-admin-token\n',
    'Bearer test-admin-token',
    '__proto__',
    'a'.repeat(5_000),
    null,
    true,
    0,
    ['test-admin-token'],
    { token: 'test-admin-token' },
  ])('%j opens in place of a token', async (token) => {
    const refused = await signIn(token)
    expect([400, 401]).toContain(refused.status)
    expect(cookieOf(refused)).toBe('')
  })

  test('somebody chose beforehand is not the one that is opened', async () => {
    const chosen = `weir=${'A'.repeat(43)}`
    const { cookie } = await openSession('test-admin-token', { cookie: chosen })
    expect(cookie).not.toBe(chosen)
    expect((await send('GET /v1/policy', { headers: { ...fromPage, cookie: chosen } })).status).toBe(401)
  })

  const changes = ['DELETE /v1/subjects/bolt', 'PUT /v1/identity', 'POST /v1/tokens', 'DELETE /session'] as const
  test.each(
    changes.flatMap((change) =>
      ['none', 'another session’s', 'empty', 'its cookie', 'in the query'].map((sent) => [change, sent] as const),
    ),
  )('sends %s with the page’s header: %s', async (change, sent) => {
    const [own, other] = [await openSession(), await openSession()]
    const tokens: Readonly<Record<string, string>> = {
      'another session’s': other.csrf,
      empty: '',
      'its cookie': own.cookie.replace('weir=', ''),
    }
    const csrf = tokens[sent]
    const before = await everything()
    const type = change.startsWith('P') ? json : {}
    const headers = { ...type, ...fromPage, cookie: own.cookie, ...(csrf === undefined ? {} : { 'x-weir-csrf': csrf }) }
    const query = sent === 'in the query' ? `?x-weir-csrf=${own.csrf}&csrf=${own.csrf}` : ''
    const refused = await send(`${change}${query}`, { headers, ...(change.startsWith('P') ? { body: '{}' } : {}) })
    expect([refused.status, JSON.parse(refused.text).type]).toEqual([403, 'urn:weir:problem:csrf'])
    expect(await everything()).toEqual(before)
  })

  test.each([
    ['with a token next to its cookie', { authorization: 'Bearer reader-token' }, 400],
    ['with a key next to its cookie', { 'x-api-key': 'acme-key' }, 400],
    ['from another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['from a program', { 'sec-fetch-site': '' }, 403],
    ['by another name of this machine', { host: 'rebound.example.com' }, 403],
  ] as const)('reads %s', async (_, headers, status) => {
    const { cookie } = await openSession()
    for (const path of ['/v1/policy', '/session']) {
      expect((await send(`GET ${path}`, { headers: { ...fromPage, cookie, ...headers } })).status).toBe(status)
    }
    expect((await send('GET /v1/policy', { headers: { ...fromPage, cookie } })).status).toBe(200)
  })

  test.each([
    ['the hash of a cookie', (cookie: string) => `weir=${sha256(cookie.replace('weir=', ''))}`],
    ['a cookie in another case', (cookie: string) => cookie.toLowerCase()],
    ['a cookie cut short', (cookie: string) => cookie.slice(0, -1)],
    ['a cookie that goes on', (cookie: string) => `${cookie}A`],
    ['an empty cookie', () => 'weir='],
    ['a wrong cookie before the right one', (cookie: string) => `weir=x; ${cookie}`],
    ['a token for a cookie', () => 'weir=test-admin-token'],
  ] as const)('has %s', async (_, forge) => {
    const { cookie } = await openSession()
    expect((await send('GET /v1/policy', { headers: { ...fromPage, cookie: forge(cookie) } })).status).toBe(401)
  })

  test('is over', async () => {
    const { cookie, csrf } = await openSession()
    const headers = { ...fromPage, cookie, 'x-weir-csrf': csrf }
    expect((await send('DELETE /session', { headers })).status).toBe(204)
    expect((await send('GET /v1/policy', { headers })).status).toBe(401)
  })
})
