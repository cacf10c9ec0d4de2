import { describe, expect, it } from 'vitest'
import { openConsole } from '../testing/open-console.ts'

const search = encodeURIComponent('POST /v1/search')

async function withPolicy() {
  const opened = openConsole()
  const applied = await opened.applyFile()
  expect([applied.statusCode, applied.json().created]).toEqual([200, 12])
  return opened
}

describe('parts of the policy', () => {
  it('are listed by name, a page at a time', async () => {
    const { ask } = await withPolicy()
    const first = (await ask('/v1/limits?limit=1')).json()
    expect(first).toMatchObject({ items: [{ name: 'minute', origin: 'file', body: { size: 100 } }], next: 'minute' })
    const second = (await ask(`/v1/limits?limit=1&after=${first.next}`)).json()
    expect(second).toMatchObject({ items: [{ name: 'per-ip' }], next: null })
  })

  it.each([
    ['plans/gold', { limits: ['minute'] }],
    ['limits/minute', { algorithm: 'fixed_window', size: 100, window: '1m' }],
    [`routes/${search}`, { cost: 5 }],
    ['upstreams/demo', { url: 'http://127.0.0.1:9000', hosts: ['*'] }],
    ['endpoints/ops', { url: 'https://ops.example.com/', secretEnv: 'OPS_SECRET' }],
    ['watches/refusals', { alert: 'weir.denied_rate.high', per: 'all' }],
    ['subjects/acme', { plan: 'free' }],
  ])('%s is read as the file has it, and written back as it was read', async (path, body) => {
    const { ask, store } = await withPolicy()
    const got = await ask(`/v1/${path}`)
    expect([got.statusCode, got.headers['weir-origin'], got.json()]).toEqual([200, 'file', body])
    const published = store.published.length
    const put = await ask(`PUT /v1/${path}`, { body: got.json() })
    expect([put.statusCode, put.headers['weir-change'], store.published.length]).toEqual([200, undefined, published])
  })

  it('are created, replaced and deleted, each change with its id in the audit', async () => {
    const { ask } = await withPolicy()
    const created = await ask('PUT /v1/plans/team', { body: { limits: ['minute'] } })
    expect([created.statusCode, created.headers['weir-origin']]).toEqual([201, 'admin'])
    const replaced = await ask('PUT /v1/plans/team', { body: { limits: [] } })
    expect([replaced.statusCode, replaced.json()]).toEqual([200, { limits: [] }])
    const deleted = await ask('DELETE /v1/plans/team')
    expect([deleted.statusCode, deleted.body]).toEqual([204, ''])
    const { items } = (await ask('/v1/changes?limit=3')).json()
    expect(items.map(({ id }: { id: string }) => id)).toEqual(
      [deleted, replaced, created].map(({ headers }) => headers['weir-change']),
    )
    expect(items[0]).toMatchObject({
      by: 'root',
      at: '2026-11-21T12:00:00.000Z',
      summary: [{ what: 'delete', kind: 'plan', name: 'team' }],
    })
  })

  it('a route may repeat its name, but no other', async () => {
    const { ask } = await withPolicy()
    expect((await ask(`PUT /v1/routes/${search}`, { body: { match: 'POST /v1/search', cost: 7 } })).json()).toEqual({
      cost: 7,
    })
    const other = await ask(`PUT /v1/routes/${search}`, { body: { match: 'GET /v1/search', cost: 7 } })
    expect(other.statusCode).toBe(422)
  })

  it('what others refer to is not deleted', async () => {
    const { ask } = await withPolicy()
    const answer = await ask('DELETE /v1/plans/free')
    expect([answer.statusCode, answer.json().problems.length]).toEqual([422, 1])
    expect(answer.json().detail).toContain('acme')
  })

  it('an unknown name is answered with 404 and the name that was probably meant', async () => {
    const { ask } = await withPolicy()
    for (const request of ['/v1/plans/glod', 'DELETE /v1/plans/glod']) {
      const answer = await ask(request)
      expect([answer.statusCode, answer.json().detail]).toEqual([404, 'There is no plan "glod"; did you mean gold?'])
    }
  })

  it('a subject is deleted with its keys, and is never written with keys', async () => {
    const { ask, store } = await withPolicy()
    const put = await ask('PUT /v1/subjects/acme', { body: { plan: 'free', keys: [] } })
    expect([put.statusCode, put.json().detail]).toEqual([422, expect.stringContaining('POST /v1/subjects/acme/keys')])
    expect((await ask('DELETE /v1/subjects/acme')).statusCode).toBe(204)
    expect([store.state.policy.keys.size, store.state.policy.subjects.size]).toEqual([0, 0])
  })

  it('a subject with keys is deleted with the scope keys only, as in a file', async () => {
    const { ask, store } = await withPolicy()
    const refused = await ask('DELETE /v1/subjects/acme', { token: 'writer-token' })
    expect([refused.statusCode, refused.json().scope, store.state.policy.keys.size]).toEqual([403, 'keys', 1])
    await ask('PUT /v1/subjects/keyless', { body: { plan: 'free' }, token: 'writer-token' })
    expect((await ask('DELETE /v1/subjects/keyless', { token: 'writer-token' })).statusCode).toBe(204)
  })
})

describe('identity', () => {
  it('is changed by itself, under its ETag, and goes back to the defaults when it is deleted', async () => {
    const { ask, store } = await withPolicy()
    expect((await ask('/v1/identity')).statusCode).toBe(404)
    const none = { 'if-none-match': '*' }
    const made = await ask('PUT /v1/identity', { body: { anonymous: 'free' }, headers: none })
    expect([made.statusCode, store.state.policy.identity.anonymousPlan?.name]).toEqual([201, 'free'])
    expect((await ask('PUT /v1/identity', { body: {}, headers: none })).statusCode).toBe(412)
    const got = await ask('/v1/identity', { token: 'reader-token' })
    expect([got.json(), got.headers.etag]).toEqual([{ anonymous: 'free' }, made.headers.etag])
    const tag = { 'if-match': String(got.headers.etag) }
    const put = await ask('PUT /v1/identity', { body: { trustedProxies: ['127.0.0.1/32'] }, headers: tag })
    expect([put.statusCode, store.state.policy.identity.anonymousPlan]).toEqual([200, undefined])
    expect((await ask('PUT /v1/identity', { body: { jwt: [{ issuer: 'x' }] } })).statusCode).toBe(422)
    expect((await ask('DELETE /v1/identity', { headers: tag })).statusCode).toBe(412)
    expect((await ask('DELETE /v1/identity')).statusCode).toBe(204)
    expect(store.state.policy.identity.trustedProxies).toEqual([])
    expect((await ask('/v1/changes?limit=1')).json().items[0].summary).toEqual([
      { what: 'delete', kind: 'identity', name: 'identity' },
    ])
  })
})

describe('If-Match', () => {
  const edit = (ask: Awaited<ReturnType<typeof withPolicy>>['ask'], size: number, headers: Record<string, string>) =>
    ask('PUT /v1/limits/minute', { body: { algorithm: 'fixed_window', size, window: '1m' }, headers })

  it('accepts one of two concurrent edits, and answers the other with 412', async () => {
    const { ask, store } = await withPolicy()
    const tag = String((await ask('/v1/limits/minute')).headers.etag)
    const { promise, resolve } = Promise.withResolvers<void>()
    store.held = promise
    const edits = Promise.all([1, 2, 3].map((size) => edit(ask, size, { 'if-match': tag })))
    // Questions that come after them are answered: they are all under way.
    for (let n = 0; n < 20; n += 1)
      await ask('PUT /v1/limits/minute', { body: '{', headers: { 'content-type': 'application/json' } })
    resolve()
    const answers = await edits
    expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([200, 412, 412])
    const winner = answers.find(({ statusCode }) => statusCode === 200)
    expect((await ask('/v1/limits/minute')).json()).toEqual(winner?.json())
    expect((await edit(ask, 4, { 'if-match': String(winner?.headers.etag) })).statusCode).toBe(200)
  })

  it('rejects a part that does not exist, and If-None-Match: * rejects one that does', async () => {
    const { ask } = await withPolicy()
    const body = { limits: ['minute'] }
    expect((await ask('PUT /v1/plans/new', { body, headers: { 'if-match': '*' } })).statusCode).toBe(412)
    expect((await ask('PUT /v1/plans/new', { body, headers: { 'if-none-match': '*' } })).statusCode).toBe(201)
    expect((await ask('PUT /v1/plans/new', { body, headers: { 'if-none-match': '*' } })).statusCode).toBe(412)
    expect((await ask('DELETE /v1/plans/new', { headers: { 'if-match': '"other"' } })).statusCode).toBe(412)
  })
})
