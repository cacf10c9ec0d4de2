import { describe, expect, it } from 'vitest'
import { openWithPolicy } from '../testing/open-console.ts'

describe('a token', () => {
  it('with the scope write cannot make tokens or keys by applying a policy', async () => {
    const { ask } = await openWithPolicy()
    const { body: file } = await ask('/v1/policy', { headers: { accept: 'application/yaml' } })
    const more = file.replace(/^tokens:$/m, `tokens:\n  mine: { sha256: ${'b'.repeat(64)}, scopes: [admin] }`)
    expect(more).not.toBe(file)
    const answer = await ask('PUT /v1/policy', { body: more, token: 'writer-token' })
    expect([answer.statusCode, answer.json().scope]).toEqual([403, 'admin'])
    const key = file.replace('id: acme-1', 'id: acme-2')
    expect(key).not.toBe(file)
    expect((await ask('PUT /v1/policy', { body: key, token: 'writer-token' })).json().scope).toBe('keys')
    const plan = file.replace(/^plans:$/m, 'plans:\n  team: { limits: [] }')
    expect((await ask('PUT /v1/policy', { body: plan, token: 'writer-token' })).statusCode).toBe(200)
    expect((await ask('/v1/changes?limit=1')).json().items[0].by).toBe('writer')
  })
})

const inside = { url: 'http://127.0.0.1:9104/metrics', secretEnv: 'OPS_SECRET', allowPrivate: true }
const demoUpstream = { url: 'http://127.0.0.1:9000', hosts: ['*'] }

describe('a token with the scope write alone', () => {
  it.each([
    ['endpoints/new', inside],
    ['endpoints/ops', { url: 'https://ops.example.com/', secretEnv: 'OPS_SECRET', allowPrivate: true }],
    ['endpoints/new', { url: 'https://ops.example.com/', secretEnv: 'WEIR_DEMO_WEBHOOK_SECRET' }],
    ['endpoints/new', { type: 'slack', urlEnv: 'WEIR_CLICKHOUSE_URL' }],
    ['endpoints/new', { type: 'teams', urlEnv: 'WEIR_CLICKHOUSE_URL' }],
    ['endpoints/new', { type: 'pagerduty', secretEnv: 'WEIR_PORTAL_KEY' }],
    ['subjects/new', { plan: 'free', contact: { webhook: inside } }],
    [
      'subjects/new',
      { plan: 'free', contact: { webhook: { url: 'https://a.example/', secretEnv: 'WEIR_DEMO_WEBHOOK_SECRET' } } },
    ],
    ['upstreams/new', { url: 'http://127.0.0.1:8123', hosts: ['ch.local'] }],
    ['upstreams/demo', { url: 'http://127.0.0.1:8123', hosts: ['*'] }],
    ['upstreams/demo', { url: 'http://127.0.0.1:9000' }],
    ['identity', { trustedHeaders: { from: ['0.0.0.0/0'], subject: 'x-subject', plan: 'gold' } }],
  ])('cannot let Weir reach private addresses or read its own variables: %s %j', async (path, body) => {
    const { ask, store } = await openWithPolicy()
    const [section = '', name = ''] = path.split('/')
    const file = JSON.parse((await ask('/v1/policy')).body)
    const whole = { ...file, [section]: name === '' ? body : { ...file[section], [name]: body } }
    const ways = [['PUT /v1/policy', whole] as const, ['PUT /v1/policy?dry_run=true', whole] as const]
    const entity = [[`PUT /v1/${path}`, body] as const]
    const published = store.published.length
    for (const [request, sent] of [...ways, ...entity]) {
      const answer = await ask(request, { body: sent, token: 'writer-token' })
      expect([request, answer.statusCode, answer.json().scope]).toEqual([request, 403, 'admin'])
    }
    expect(store.published).toHaveLength(published)
    for (const [request, sent] of [...ways, ...entity])
      expect((await ask(request, { body: sent })).statusCode).toBeLessThan(202)
  })

  it('changes the rest of such a part, takes parts away, and makes public endpoints', async () => {
    const { ask } = await openWithPolicy()
    expect((await ask('PUT /v1/endpoints/inside', { body: inside })).statusCode).toBe(201)
    const asked = [
      ['PUT /v1/endpoints/inside', { ...inside, paused: true, only: { percent: '100%' } }],
      ['PUT /v1/upstreams/demo', { ...demoUpstream, timeout: '5s' }],
      [
        'PUT /v1/subjects/new',
        { plan: 'free', contact: { webhook: { url: 'https://a.example/', secretEnv: 'A_SECRET' } } },
      ],
      ['PUT /v1/endpoints/more', { url: 'https://ops.example.com/', secretEnv: 'OPS_SECRET' }],
      ['PUT /v1/endpoints/inside', { url: 'https://ops.example.com/', secretEnv: 'OPS_SECRET' }],
      ['DELETE /v1/endpoints/inside', undefined],
      ['DELETE /v1/upstreams/demo', undefined],
    ] as const
    for (const [request, body] of asked) {
      const answer = await ask(request, { token: 'writer-token', ...(body === undefined ? {} : { body }) })
      expect([request, answer.statusCode < 300]).toEqual([request, true])
    }
    expect((await ask('PUT /v1/upstreams/demo', { body: demoUpstream, token: 'writer-token' })).statusCode).toBe(403)
  })
})

describe('tokens of the policy', () => {
  it('are made with a secret that is shown once, work immediately, and end when they are deleted', async () => {
    const { ask, store } = await openWithPolicy()
    const made = await ask('POST /v1/tokens', { body: { name: 'ci', scopes: ['usage', 'read'] } })
    expect([made.statusCode, made.headers['cache-control']]).toEqual([201, 'private, no-store'])
    const { token } = made.json()
    expect(token).toMatch(/^weir_token_[\w-]{43}$/)
    expect((await ask('/v1/plans', { token })).statusCode).toBe(200)
    const listed = await ask('/v1/tokens')
    expect(listed.json().items).toContainEqual({ name: 'ci', scopes: ['usage', 'read'], origin: 'admin' })
    expect(JSON.stringify(store.published) + listed.body).not.toContain(token)
    expect((await ask('POST /v1/tokens', { body: { name: 'ci', scopes: ['read'] } })).statusCode).toBe(409)
    expect((await ask('POST /v1/tokens', { body: { name: 'root', scopes: ['read'] } })).statusCode).toBe(409)
    expect((await ask('POST /v1/tokens', { body: { name: 'x', scopes: ['everything'] } })).statusCode).toBe(400)
    expect((await ask('DELETE /v1/tokens/ci')).statusCode).toBe(204)
    expect((await ask('/v1/plans', { token })).statusCode).toBe(401)
    expect((await ask('DELETE /v1/tokens/ci')).statusCode).toBe(404)
  })
})
