import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { nowMs, openWithPolicy, smallPolicy } from '../testing/open-console.ts'

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')
const hourMs = 3_600_000

describe('a key', () => {
  it('is made of 256 random bits, shown once, and kept as its hash', async () => {
    const { ask, store } = await openWithPolicy()
    const made = await ask('POST /v1/subjects/acme/keys')
    expect([made.statusCode, made.headers['cache-control']]).toEqual([201, 'private, no-store'])
    const { key, id, subject, expires } = made.json()
    expect(key).toMatch(/^weir_[\w-]{43}$/)
    expect([subject, expires, id]).toEqual(['acme', null, hashOf(key).slice(0, 12)])
    expect(store.state.policy.keys.get(hashOf(key))).toMatchObject({ id, subject: { id: 'acme' } })
    const listed = await ask('/v1/keys?subject=acme')
    const facts = { prefix: key.slice(0, 9), created: new Date(nowMs).toISOString() }
    expect(listed.json().items).toContainEqual({ id, subject: 'acme', expires: null, ...facts })
    const all = JSON.stringify(store.published) + listed.body + (await ask('/v1/changes')).body
    expect(all).not.toContain(key)
    expect((await ask('POST /v1/subjects/acme/keys')).json().key).not.toBe(key)
  })

  it('may be named and have an end', async () => {
    const { ask } = await openWithPolicy()
    const body = { id: 'ci', expires: '2027-01-01T01:00:00+01:00' }
    expect((await ask('POST /v1/subjects/acme/keys', { body })).json()).toMatchObject({
      id: 'ci',
      expires: '2027-01-01T00:00:00.000Z',
    })
    expect((await ask('POST /v1/subjects/acme/keys', { body })).statusCode).toBe(409)
    for (const wrong of [{ expires: 'soon' }, { expires: '2020-01-01T00:00:00Z' }, { colour: 'red' }]) {
      expect([wrong, (await ask('POST /v1/subjects/acme/keys', { body: wrong })).statusCode]).toEqual([wrong, 400])
    }
    expect((await ask('POST /v1/subjects/acme/keys', { body: { id: 'a b' } })).statusCode).toBe(422)
    const unknown = await ask('POST /v1/subjects/acmee/keys')
    expect([unknown.statusCode, unknown.json().detail]).toEqual([404, expect.stringContaining('did you mean acme?')])
  })

  it('that is rotated stays valid for the overlap, but never beyond its own end', async () => {
    const { ask, store } = await openWithPolicy()
    const old = (await ask('POST /v1/subjects/acme/keys', { body: { id: 'old' } })).json()
    const rotated = (await ask('POST /v1/keys/old/rotate', { body: { overlap: '2h', id: 'new' } })).json()
    expect(rotated).toMatchObject({
      id: 'new',
      subject: 'acme',
      expires: null,
      old: { id: 'old', expires: new Date(nowMs + 2 * hourMs).toISOString() },
    })
    expect(store.state.policy.keys.get(hashOf(old.key))?.expiresAtMs).toBe(nowMs + 2 * hourMs)
    expect(store.state.policy.keys.get(hashOf(rotated.key))?.expiresAtMs).toBeUndefined()
    const again = (await ask('POST /v1/keys/old/rotate', { body: {} })).json()
    expect(again.old.expires).toBe(new Date(nowMs + 2 * hourMs).toISOString())
    expect((await ask('POST /v1/keys/new/rotate')).json().old.expires).toBe(new Date(nowMs + 24 * hourMs).toISOString())
    expect((await ask('POST /v1/keys/new/rotate', { body: { overlap: 'long' } })).statusCode).toBe(400)
    const summary = (await ask('/v1/changes?limit=1')).json().items[0].summary
    expect(summary.map(({ what, name }: { what: string; name: string }) => [what, name])[0]).toEqual(['rotate', 'new'])
  })

  it('that is revoked admits no caller', async () => {
    const { ask, store } = await openWithPolicy()
    const { key } = (await ask('POST /v1/subjects/acme/keys', { body: { id: 'ci' } })).json()
    expect((await ask('DELETE /v1/keys/ci')).statusCode).toBe(204)
    expect(store.state.get('key', hashOf(key))).toBeUndefined()
    const answer = await ask('DELETE /v1/keys/ci')
    expect([answer.statusCode, (await ask('POST /v1/keys/ci/rotate')).statusCode]).toEqual([404, 404])
  })

  it('keeps its own limits when it is rotated', async () => {
    const policy = smallPolicy
      .replace('id: acme-1 }', 'id: acme-1, limits: { by-key: { size: 3 } } }')
      .replace(
        'limits:\n',
        'limits:\n  by-key: { algorithm: fixed_window, size: 9, window: 1m, by: [key], applies: all }\n',
      )
    const { ask, applyFile, store } = await openWithPolicy()
    expect((await applyFile(policy)).statusCode).toBe(200)
    const { key } = (await ask('POST /v1/keys/acme-1/rotate')).json()
    expect(store.state.get('key', hashOf(key))?.body).toMatchObject({ limits: { 'by-key': { size: 3 } } })
  })

  it.each(['DELETE /v1/keys/acme-1', 'POST /v1/keys/acme-1/rotate'])(
    'of a file that %s has ended does not come back when the file is applied again',
    async (request) => {
      const { ask, applyFile, store } = await openWithPolicy()
      await ask(request, request.startsWith('POST') ? { body: { overlap: '0s' } } : {})
      const ended = store.state.policy.keys.get('a'.repeat(64))
      expect(ended?.expiresAtMs).toBeLessThanOrEqual(nowMs)
      const again = (await applyFile(`${smallPolicy}# edited\n`)).json()
      expect(again).toMatchObject({ changed: false, changes: [{ action: 'keep', kind: 'key', name: 'acme-1' }] })
      expect(store.state.policy.keys.get('a'.repeat(64))).toEqual(ended)
      expect((await applyFile(`${smallPolicy}# edited again\n`)).json().changed).toBe(false)
    },
  )

  it('that has ended is deleted once its subject has very many keys', async () => {
    const { ask, store } = await openWithPolicy()
    for (let n = 0; n < 120; n += 1) {
      const id = n === 0 ? 'acme-1' : `key-${n}`
      const rotated = await ask(`POST /v1/keys/${id}/rotate`, { body: { overlap: '0s', id: `key-${n + 1}` } })
      expect([n, rotated.statusCode]).toEqual([n, 201])
    }
    expect(store.state.keysOf('acme').length).toBeLessThan(60)
  })

  it('that was revoked stays so when its subject has very many keys, for as long as a policy has room', async () => {
    const { ask, applyFile, store } = await openWithPolicy()
    const isRevoked = () => store.state.policy.keys.get('a'.repeat(64))?.expiresAtMs === 0
    const create = async (id: string) => (await ask('POST /v1/subjects/acme/keys', { body: { id } })).statusCode
    await ask('DELETE /v1/keys/acme-1')
    for (let n = 1; n < 100; n += 1) expect([n, await create(`key-${n}`)]).toEqual([n, 201])
    expect([store.state.keysOf('acme').length, isRevoked()]).toEqual([100, true])
    await applyFile(`${smallPolicy}# edited\n`)
    expect(isRevoked()).toBe(true)
    expect([await create('key-100'), store.state.keysOf('acme').length, isRevoked()]).toEqual([201, 100, false])
    expect(await create('key-101')).toBe(422)
  })
})

it('keys are listed a page at a time, each once', async () => {
  const { ask } = await openWithPolicy()
  for (let n = 0; n < 9; n += 1) await ask('POST /v1/subjects/acme/keys', { body: { id: `key-${n}` } })
  await ask('DELETE /v1/keys/acme-1')
  for (const query of ['', '&subject=acme']) {
    const ids: string[] = []
    let after = ''
    do {
      const { items, next } = (await ask(`/v1/keys?limit=2${query}${after}`)).json()
      ids.push(...items.map(({ id }: { id: string }) => id))
      after = next === null ? '' : `&after=${next}`
    } while (after !== '')
    expect(ids.toSorted()).toEqual(Array.from({ length: 9 }, (_, n) => `key-${n}`))
  }
  expect((await ask('/v1/keys?after=nothing')).statusCode).toBe(400)
  expect((await ask('/v1/keys?subject=nobody')).statusCode).toBe(404)
})
