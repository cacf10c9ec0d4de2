import { describe, expect, it } from 'vitest'
import { Sessions } from '../http/sessions.ts'
import { nowMs, openConsole, openWithPolicy } from '../testing/open-console.ts'

const fromPage = { host: 'localhost:8090', 'sec-fetch-site': 'same-origin' }

/** A console and a browser in front of it, which keeps the cookie. */
async function openBrowser(token = 'token', overrides: Parameters<typeof openConsole>[0] = {}, headers = fromPage) {
  const { app, ask, applyFile } = openConsole(overrides)
  expect((await applyFile()).statusCode).toBe(200)
  const signIn = await app.inject({ method: 'POST', url: '/session', headers, payload: { token } })
  const cookie = String(signIn.headers['set-cookie']).split(';')[0] ?? ''
  const send = (request: string, more: Readonly<Record<string, string>> = {}, payload?: object) => {
    const [method = 'GET', url = ''] = request.split(' ')
    return app.inject({
      method: method as 'GET',
      url,
      headers: { ...headers, cookie, ...more },
      ...(payload === undefined ? {} : { payload }),
    })
  }
  return { signIn, send, ask, cookie, csrf: { 'x-weir-csrf': signIn.json().csrf as string } }
}

describe('a browser’s session', () => {
  it('stands for the token that it was opened with: its name in the audit, its scopes', async () => {
    const { signIn, send, csrf } = await openBrowser('writer-token')
    expect(signIn.statusCode).toBe(201)
    expect(signIn.json()).toMatchObject({ by: 'writer', scopes: ['write'], subjects: null })
    expect(signIn.headers['set-cookie']).toMatch(/^weir=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    expect(signIn.payload).not.toContain('writer-token')
    expect((await send('GET /session')).json()).toEqual(signIn.json())
    expect((await send('GET /v1/keys')).json().type).toBe('urn:weir:problem:scope-missing')
    expect((await send('PUT /v1/plans/basic', csrf, { limits: ['minute'] })).statusCode).toBe(201)
  })

  it('reads, and changes nothing, by an address that was typed', async () => {
    const { send, csrf } = await openBrowser()
    const typed = { 'sec-fetch-site': 'none' }
    expect((await send('GET /v1/policy', typed)).statusCode).toBe(200)
    expect((await send('DELETE /v1/subjects/acme', { ...typed, ...csrf })).statusCode).toBe(403)
  })

  it('ends when its token is revoked', async () => {
    const { send, ask } = await openBrowser('reader-token')
    expect((await send('GET /v1/policy')).statusCode).toBe(200)
    expect((await ask('DELETE /v1/tokens/reader')).statusCode).toBe(204)
    expect((await send('GET /v1/policy')).statusCode).toBe(401)
    expect((await send('GET /session')).statusCode).toBe(401)
  })

  it('ends when the browser signs out, and the cookie with it', async () => {
    const { send, csrf } = await openBrowser()
    const out = await send('DELETE /session', csrf)
    expect([out.statusCode, out.headers['set-cookie']]).toEqual([204, expect.stringMatching(/^weir=; .*Max-Age=0$/)])
    expect((await send('GET /v1/policy')).statusCode).toBe(401)
  })

  it('is over after twelve hours', async () => {
    let now = nowMs
    const { send } = await openBrowser('token', { clock: { nowMs: () => now } })
    now += 12 * 3_600_000 - 1
    expect((await send('GET /v1/policy')).statusCode).toBe(200)
    now += 1
    expect((await send('GET /v1/policy')).statusCode).toBe(401)
  })

  it('has a cookie for TLS alone where browsers come by a public address', async () => {
    const headers = { ...fromPage, host: 'weir.example.com' }
    const { signIn, send } = await openBrowser('token', { publicUrl: new URL('https://weir.example.com') }, headers)
    expect(signIn.headers['set-cookie']).toMatch(/^__Host-weir=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    expect((await send('GET /v1/policy')).statusCode).toBe(200)
    expect((await send('GET /v1/policy', { host: 'rebound.example.com' })).statusCode).toBe(403)
  })
})

it('reads no body of a sign-in by a page of somebody else, and none of more than 8 kB', async () => {
  const { app } = await openWithPolicy()
  const signIn = (more: object, length: number) =>
    app.inject({
      method: 'POST',
      url: '/session',
      headers: { ...fromPage, 'content-type': 'application/json', ...more },
      payload: `{"token":"${'a'.repeat(length)}`,
    })
  expect((await signIn({ 'sec-fetch-site': 'cross-site' }, 9_000)).json().type).toBe('urn:weir:problem:csrf')
  expect((await signIn({}, 9_000)).statusCode).toBe(413)
})

describe('the sessions of a console', () => {
  const origin = { publicUrl: undefined, hasTls: false }
  const findAgain = () => undefined
  const headersOf = (id: string) => ({ cookie: `other=1; weir=${id}` })

  it('end after an hour without a request', () => {
    let elapsed = 0
    const sessions = new Sessions(
      origin,
      () => nowMs,
      () => elapsed,
    )
    const { id } = sessions.open({ findAgain, sha256: 'a' })
    for (const passed of [3_599_999, 3_599_999]) {
      elapsed += passed
      expect(sessions.find(headersOf(id))).toBeDefined()
    }
    elapsed += 3_600_001
    expect(sessions.find(headersOf(id))).toBeUndefined()
  })

  it('are 10,000 at most: those that rested longest are over', () => {
    const sessions = new Sessions(origin, () => nowMs)
    const ids = Array.from({ length: 10_001 }, (_, n) => sessions.open({ findAgain, sha256: `${n}` }).id)
    expect([ids[0], ids[1]].map((id) => sessions.find(headersOf(id ?? '')) !== undefined)).toEqual([false, true])
  })

  it('are ten of one credential at most: its oldest is over, and no other credential’s', () => {
    const sessions = new Sessions(origin, () => nowMs)
    const isOpen = (id = '') => sessions.find(headersOf(id)) !== undefined
    const other = sessions.open({ findAgain, sha256: 'other' }).id
    const ids = Array.from({ length: 10_100 }, () => sessions.open({ findAgain, sha256: 'mine' }).id)
    expect([isOpen(other), isOpen(ids.at(-11)), ids.slice(-10).every(isOpen)]).toEqual([true, false, true])
    sessions.end(headersOf(ids.at(-1) ?? ''))
    sessions.open({ findAgain, sha256: 'mine' })
    expect(isOpen(ids.at(-10))).toBe(true)
  })
})
