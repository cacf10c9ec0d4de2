import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { describe, expect, it } from 'vitest'
import { openConsole, openWithPolicy, smallPolicy } from '../testing/open-console.ts'

const yaml = { headers: { accept: 'application/yaml' } }

describe('a policy file', () => {
  it.each(['application/yaml', 'application/json'])(
    'is exported as %s, and applied again changes nothing',
    async (type) => {
      const { ask, store } = await openWithPolicy()
      await ask('PUT /v1/plans/team', { body: { limits: ['minute'] } })
      await ask('POST /v1/subjects/acme/keys', { body: { id: 'ci', expires: '2030-01-01T00:00:00Z' } })
      const exported = await ask('/v1/policy', { headers: { accept: type } })
      expect([exported.statusCode, exported.headers['content-type']]).toEqual([200, type])
      expect(parsePolicy(exported.body, 'export').kind).toBe('policy')
      const other = openConsole()
      expect((await other.applyFile(exported.body)).json().created).toBe(store.state.size)
      expect((await other.ask('/v1/policy', yaml)).body).toBe((await ask('/v1/policy', yaml)).body)
      expect((await ask('PUT /v1/policy?dry_run=true', { body: exported.body })).json().changed).toBe(false)
    },
  )

  it('that is invalid is rejected with all its problems and their positions', async () => {
    const { applyFile, store } = openConsole()
    const answer = await applyFile(
      'version: 1\nplans: { free: { limits: [minut] } }\nlimits:\n  minute: { algorithm: fixed_window, size: -1, window: 1m }\n',
    )
    expect(answer.statusCode).toBe(422)
    const { problems } = answer.json()
    expect(problems.map(({ path, line }: { path: string; line: number }) => [path, line])).toEqual([
      ['plans.free.limits[0]', 2],
      ['limits.minute.size', 4],
    ])
    expect([store.state.size, store.published.length]).toEqual([0, 0])
  })

  it('is compared without being applied, and nothing secret is shown', async () => {
    const { ask, store } = await openWithPolicy()
    const edited = smallPolicy
      .replace('size: 100', 'size: 200')
      .replace('gold: { limits: [minute] }', 'silver: { limits: [] }')
      .replace('scopes: [write]', 'scopes: [read]')
    const answer = await ask('PUT /v1/policy?dry_run=true', { body: edited })
    expect(answer.json()).toMatchObject({ dry_run: true, changed: true, created: 1, updated: 2, deleted: 1 })
    const changes = answer
      .json()
      .changes.map(({ action, kind, name }: Record<string, string>) => `${action} ${kind} ${name}`)
    expect(changes.toSorted()).toEqual([
      'create plan silver',
      'delete plan gold',
      'update limit minute',
      'update token writer',
    ])
    expect(answer.body).not.toMatch(/[0-9a-f]{64}.*sha256|sha256/)
    expect([store.published.length, store.state.policy.limits.get('minute')?.size]).toEqual([1, 100])
  })

  it('takes a subject away with the keys that the admin API has made or revoked', async () => {
    const { ask, applyFile, store } = await openWithPolicy()
    await ask('POST /v1/subjects/acme/keys', { body: { id: 'ci' } })
    await ask('DELETE /v1/keys/acme-1')
    const answer = await applyFile(smallPolicy.replace(/ {2}acme: .*/, '  beta: { plan: free }'))
    expect([answer.statusCode, store.state.count('key')]).toEqual([200, 0])
  })

  it('deletes a part that was put with Weir-Origin: file and that it does not have', async () => {
    const { ask, applyFile } = await openWithPolicy()
    const url = (port: number) => ({ body: { url: `http://127.0.0.1:${port}`, hosts: ['*'] } })
    const put = await ask('PUT /v1/upstreams/demo', { ...url(9001), headers: { 'weir-origin': 'file' } })
    expect([put.statusCode, put.headers['weir-origin']]).toEqual([200, 'file'])
    const own = smallPolicy.replace('upstreams: { demo:', 'upstreams: { mine:')
    expect((await applyFile(own)).statusCode).toBe(200)
    expect((await ask('/v1/upstreams/demo')).statusCode).toBe(404)
    const wrong = await ask('PUT /v1/upstreams/mine', { ...url(9002), headers: { 'weir-origin': 'me' } })
    expect(wrong.statusCode).toBe(400)
  })

  it('is edited as a whole: parts stay whose they are, what the text lacks is deleted, and the file applied last stays the last', async () => {
    const { ask, store } = await openWithPolicy()
    await ask('PUT /v1/plans/team', { body: { limits: ['minute'] } })
    await ask('PUT /v1/subjects/beta', { body: { plan: 'team' } })
    const origins = () => ['acme', 'beta'].map((name) => store.state.get('subject', name)?.origin)
    const { body, headers } = await ask('/v1/policy', yaml)
    const edit = (text: string, ifMatch: unknown, query = '') =>
      ask(`PUT /v1/policy${query}`, { body: text, headers: { 'weir-origin': 'admin', 'if-match': String(ifMatch) } })
    expect((await edit(body, headers.etag)).json().changed).toBe(false)
    const edited = body.replace('size: 100', 'size: 200').replace(/ {2}beta: .*\n/, '')
    expect((await edit(edited, headers.etag, '?dry_run=true')).json()).toMatchObject({ updated: 1, deleted: 1 })
    const applied = await edit(edited, headers.etag)
    expect(applied.json()).toMatchObject({ created: 0, updated: 1, deleted: 1 })
    expect([origins(), store.state.policy.limits.get('minute')?.size]).toEqual([['file', undefined], 200])
    expect((await ask(`PUT /v1/policy?if_changed=true`, { body: smallPolicy })).json().changed).toBe(false)
    expect((await ask('/v1/changes?limit=1')).json().items[0].summary).toEqual([
      { what: 'put', kind: 'limit', name: 'minute' },
      { what: 'delete', kind: 'subject', name: 'beta' },
    ])
    const late = await edit(body, headers.etag)
    expect([late.statusCode, late.json().detail]).toEqual([412, expect.stringContaining('root changed the policy')])
    expect((await ask('/v1/policy', yaml)).headers.etag).toBe(`"${applied.headers['weir-change']}"`)
  })

  it('that renames a subject does not bring a revoked key of it back', async () => {
    const { ask, applyFile, store } = await openWithPolicy()
    await ask('DELETE /v1/keys/acme-1')
    const renamed = smallPolicy.replace('acme:', 'beta:')
    for (const text of [renamed, renamed.replace('size: 100', 'size: 7')]) {
      expect((await applyFile(text)).statusCode).toBe(200)
      expect(store.state.get('key', 'a'.repeat(64))?.body).toEqual({
        subject: 'beta',
        id: 'acme-1',
        expires: '1970-01-01T00:00:00.000Z',
      })
    }
  })

  it.each(['application/yaml', 'application/json'])(
    'shows hashes of keys with the scope keys and of tokens with admin only, and without them cannot be applied: %s',
    async (accept) => {
      const { ask, store } = await openWithPolicy()
      const { token: keeper } = (
        await ask('POST /v1/tokens', { body: { name: 'keeper', scopes: ['read', 'keys'] } })
      ).json()
      const exportedBy = async (token: string) => (await ask('/v1/policy', { token, headers: { accept } })).body
      const [bare, withKeys] = [await exportedBy('reader-token'), await exportedBy(keeper)]
      expect([/[0-9a-f]{64}/.test(bare), bare.includes('acme-1'), bare.includes('writer')]).toEqual([false, true, true])
      expect(withKeys.match(/[0-9a-f]{64}/g)).toEqual(['a'.repeat(64)])
      const published = store.published.length
      for (const body of [bare, withKeys]) {
        const answer = await ask('PUT /v1/policy', { body })
        expect([answer.statusCode, answer.json().detail]).toEqual([422, expect.stringContaining('needs `sha256`')])
      }
      expect([store.published.length, store.state.count('key')]).toEqual([published, 1])
    },
  )

  it('is applied only once under one revision, where that is asked for', async () => {
    const { ask, applyFile, store } = openConsole()
    await ask('PUT /v1/policy?if_changed=true&revision=0123456789abcdef', { body: smallPolicy })
    await ask('PUT /v1/limits/minute', { body: { algorithm: 'fixed_window', size: 7, window: '1m' } })
    const published = store.published.length
    const again = await ask('PUT /v1/policy?if_changed=true&revision=0123456789abcdef', { body: smallPolicy })
    expect([again.json().changed, again.headers['weir-change'], store.published.length]).toEqual([
      false,
      undefined,
      published,
    ])
    expect(store.state.policy.limits.get('minute')?.size).toBe(7)
    expect((await applyFile()).json()).toMatchObject({ changed: true, updated: 1 })
    expect(store.state.policy.limits.get('minute')?.size).toBe(100)
  })

  it('of one subject leaves the others out', async () => {
    const { ask } = await openWithPolicy()
    await ask('PUT /v1/subjects/beta', { body: { plan: 'free' } })
    const { subjects } = (await ask('/v1/policy?subject=beta')).json()
    expect(subjects).toEqual({ beta: { plan: 'free' } })
    expect((await ask('/v1/policy?subject=gamma')).statusCode).toBe(404)
  })
})
