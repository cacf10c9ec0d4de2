import { SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { nowMs, openConsole, smallPolicy } from '../testing/open-console.ts'

const minuteMs = 60_000
/** Long enough for every algorithm. */
const key = 'the first key of portals is long enough to sign '.repeat(2)
const otherKey = 'another key of portals as long as it has to be'

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const seconds = nowMs / 1_000
const claims = { sub: 'acme', aud: 'weir-portal', iat: seconds, exp: seconds + 600 }
const signed = (payload: object, by = key, alg = 'HS256') =>
  new SignJWT({ ...payload }).setProtectedHeader({ alg }).sign(new TextEncoder().encode(by))

async function withPolicy() {
  let now = nowMs
  let keyText = key
  const opened = openConsole({ clock: { nowMs: () => now }, portalKey: () => keyText })
  await opened.applyFile()
  const make = async (body: object = {}) =>
    (await opened.ask('POST /v1/subjects/acme/portal', { body })).json().token as string
  return {
    ...opened,
    make,
    read: async (token: string) => (await opened.ask('/v1/usage', { token })).statusCode,
    wait: (ms: number) => (now += ms),
    useKeys: (text: string) => (keyText = text),
  }
}

describe('a portal token', () => {
  it('is shown once, kept nowhere, and reads the usage of its subject for an hour', async () => {
    const { ask, read, wait, store } = await withPolicy()
    const made = await ask('POST /v1/subjects/acme/portal')
    const { token, ...rest } = made.json()
    expect([made.statusCode, made.headers['cache-control']]).toEqual([201, 'private, no-store'])
    expect(rest).toEqual({ subject: 'acme', link: null, expires_at: '2026-11-21T13:00:00.000Z' })
    expect(token).toMatch(/^weir_portal_/)
    expect(await read(token)).toBe(200)
    expect((await ask('/v1/usage?subject=bolt', { token })).json().type).toBe('urn:weir:problem:subject-forbidden')
    expect(JSON.stringify(store.published)).not.toContain(token)
    wait(60 * minuteMs - 1)
    expect(await read(token)).toBe(200)
    wait(1)
    expect(await read(token)).toBe(401)
  })

  it.each([
    ['5m', 201],
    ['7d', 201],
    ['4m', 400],
    ['299s', 400],
    ['604801s', 400],
    ['soon', 400],
  ])('that is to hold for %s is answered with %i', async (text, status) => {
    const { ask } = await withPolicy()
    expect((await ask('POST /v1/subjects/acme/portal', { body: { expires_in: text } })).statusCode).toBe(status)
  })

  it('ends with all of its subject; those that are made afterwards are valid, also on a clock that is behind', async () => {
    const { ask, read, wait, make } = await withPolicy()
    const [first, second] = [await make(), await make({ expires_in: '7d' })]
    expect((await ask('DELETE /v1/subjects/acme/portal')).statusCode).toBe(204)
    expect([await read(first), await read(second)]).toEqual([401, 401])
    wait(-minuteMs)
    const third = await make()
    expect(await read(third)).toBe(200)
    expect(await read(`weir_portal_${await signed({ ...claims, after: '2099-01-01T00:00:00.000Z' })}`)).toBe(401)
    await ask('DELETE /v1/subjects/acme/portal')
    expect(await read(third)).toBe(401)
    expect((await ask('/v1/changes?limit=1')).json().items[0].summary).toEqual([
      { what: 'revoke', kind: 'portal', name: 'acme' },
    ])
  })

  it('stays ended when an older file is applied, and its entry is deleted once all that it ends are over', async () => {
    const { ask, applyFile, read, wait, make, store } = await withPolicy()
    await ask('DELETE /v1/subjects/acme/portal')
    const before = await ask('/v1/policy', { headers: { accept: 'application/yaml' } })
    const token = await make({ expires_in: '7d' })
    await ask('DELETE /v1/subjects/acme/portal')
    expect((await applyFile(before.body)).statusCode).toBe(200)
    expect((await applyFile(smallPolicy)).statusCode).toBe(200)
    expect(await read(token)).toBe(401)
    wait(8 * 24 * 60 * minuteMs + 2)
    await ask('PUT /v1/subjects/bolt', { body: { plan: 'free' } })
    const late = await make({ expires_in: '7d' })
    await ask('DELETE /v1/subjects/bolt/portal')
    expect([...store.state.policy.portals.keys()]).toEqual(['bolt'])
    expect(await read(late)).toBe(200)
  })

  it('ends with its subject', async () => {
    const { ask, read, make } = await withPolicy()
    const token = await make()
    await ask('DELETE /v1/subjects/acme')
    expect(await read(token)).toBe(401)
  })

  it('is valid under both keys while one replaces the other', async () => {
    const { read, make, useKeys } = await withPolicy()
    const old = await make()
    useKeys(`${otherKey},${key}`)
    const fresh = await make()
    expect([await read(old), await read(fresh)]).toEqual([200, 200])
    useKeys(otherKey)
    expect([await read(old), await read(fresh)]).toEqual([401, 200])
  })

  it('is made by nobody without a key, and by nobody without the scope keys', async () => {
    const { ask, make, useKeys } = await withPolicy()
    const token = await make()
    for (const method of ['POST', 'DELETE']) {
      expect((await ask(`${method} /v1/subjects/acme/portal`, { token: 'writer-token' })).json().scope).toBe('keys')
      expect((await ask(`${method} /v1/subjects/acme/portal`, { token })).statusCode).toBe(403)
    }
    useKeys('')
    expect((await ask('POST /v1/subjects/acme/portal')).json().type).toBe('urn:weir:problem:portal-unavailable')
    expect((await ask('/v1/usage', { token })).statusCode).toBe(401)
  })
})

describe('a token that Weir did not make', () => {
  it.each([
    ['with the key, as a control', () => signed(claims), 200],
    ['with another key', () => signed(claims, otherKey), 401],
    ['with another algorithm', () => signed(claims, key, 'HS512'), 401],
    ['for another audience', () => signed({ ...claims, aud: 'weir' }), 401],
    ['without an end', () => signed({ ...claims, exp: undefined }), 401],
    ['that has ended', () => signed({ ...claims, exp: seconds }), 401],
    ['without a subject', () => signed({ ...claims, sub: undefined }), 401],
    ['of nobody', () => signed({ ...claims, sub: 'nobody' }), 401],
    ['of an address', () => signed({ ...claims, sub: 'ip:192.0.2.1' }), 401],
    ['whose `after` is no text', () => signed({ ...claims, after: 7 }), 401],
    ['without a signature', async () => `${base64url({ alg: 'none' })}.${base64url(claims)}.`, 401],
    [
      'with the claims of another',
      async () => (await signed(claims)).replace(/\.[^.]+\./, `.${base64url({ ...claims, sub: 'bolt' })}.`),
      401,
    ],
    ['of nothing', async () => '', 401],
    ['longer than any', async () => 'a'.repeat(2_000), 401],
  ])('%s', async (_, make, status) => {
    const { read } = await withPolicy()
    expect(await read(`weir_portal_${await make()}`)).toBe(status)
  })
})
