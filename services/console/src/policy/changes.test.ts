import { describe, expect, it } from 'vitest'
import { openConsole, openWithPolicy } from '../testing/open-console.ts'

const team = { body: { limits: ['minute'] } }

describe('a change', () => {
  it('is rejected while Kafka is down, with Retry-After, and leaves everything as it was', async () => {
    const { ask, store, audit } = await openWithPolicy()
    const [size, changes] = [store.state.size, audit.page(undefined, 100)]
    store.isAway = true
    for (const request of ['PUT /v1/plans/team', 'POST /v1/subjects/acme/keys', 'POST /v1/tokens']) {
      const body = request.endsWith('tokens')
        ? { name: 'ci', scopes: ['read'] }
        : request.endsWith('keys')
          ? {}
          : team.body
      const answer = await ask(request, { body })
      expect([request, answer.statusCode, answer.headers['retry-after'], answer.json().type]).toEqual([
        request,
        503,
        '5',
        'urn:weir:problem:policy-unavailable',
      ])
    }
    expect([store.state.size, audit.page(undefined, 100)]).toEqual([size, changes])
    expect((await ask('/v1/plans')).statusCode).toBe(200)
    store.isAway = false
    expect((await ask('PUT /v1/plans/team', team)).statusCode).toBe(201)
  })

  it('that was not read back in time is not answered as done', async () => {
    const { ask, store } = await openWithPolicy()
    store.isBehind = true
    const answer = await ask('PUT /v1/plans/team', team)
    expect([answer.statusCode, answer.json().detail]).toEqual([503, expect.stringContaining('look before you repeat')])
  })

  it('cannot be made before the policy was read', async () => {
    const { ask } = openConsole({
      policy: {
        state: undefined,
        checkpoint: undefined,
        stale: [],
        reached: async () => true,
        problemsOf: () => undefined,
      },
    })
    for (const request of ['/v1/plans', '/v1/policy', '/v1/keys', 'PUT /v1/plans/team', 'DELETE /v1/plans/team']) {
      const answer = await ask(request, request.startsWith('PUT') ? team : {})
      expect([request, answer.statusCode, answer.headers['retry-after']]).toEqual([request, 503, '5'])
    }
    expect((await ask('/v1/usage')).statusCode).toBe(200)
  })

  it('is not the first one unless it is a whole file: processes would lose what their own files say', async () => {
    const { ask, applyFile } = openConsole()
    const answer = await ask('PUT /v1/plans/team', { body: { limits: [] } })
    expect([answer.statusCode, answer.json().type]).toEqual([409, 'urn:weir:problem:conflict'])
    expect((await applyFile('version: 1\n')).statusCode).toBe(200)
    expect((await ask('PUT /v1/plans/team', { body: { limits: [] } })).statusCode).toBe(201)
  })

  it('waits for those before it, to a bound', async () => {
    const { ask, store } = await openWithPolicy()
    const { promise, resolve } = Promise.withResolvers<void>()
    store.held = promise
    const put = (n: number) => ask(`PUT /v1/plans/team-${n}`, team)
    const waiting = Promise.all(Array.from({ length: 100 }, (_, n) => put(n)))
    // Once it is refused, all those before it wait.
    expect((await put(100)).statusCode).toBe(503)
    resolve()
    for (const answer of await waiting) expect(answer.statusCode).toBe(201)
    expect((await put(101)).statusCode).toBe(201)
  })

  it('of very many entities goes in parts, what others refer to first, each part with an audit record', async () => {
    const { applyFile, store, audit } = openConsole()
    const subjects = Array.from({ length: 7_000 }, (_, n) => `  s${n}: { plan: free }`).join('\n')
    const text = `version: 1\nplans: { free: { limits: [] } }\nsubjects:\n${subjects}\n`
    const answer = await applyFile(text)
    expect([answer.statusCode, answer.json().created]).toEqual([200, 7_001])
    expect(store.published.map((messages) => messages.length)).toEqual([5_001, 2_002])
    expect(store.published[0]?.[0]?.key).toBe('plan/free')
    expect([store.state.count('subject'), audit.page(undefined, 10).length]).toEqual([7_000, 2])
    // A stop after the first part leaves a file that is still to be applied.
    expect(audit.page(undefined, 10).map(({ summary }) => summary[0]?.kind)).toEqual(['policy', 'plan'])
  })

  it('whose second part Kafka does not take says that the first is in force, and is completed by making it again', async () => {
    const { applyFile, store } = openConsole()
    const subjects = Array.from({ length: 5_001 }, (_, n) => `  s${n}: { plan: free }`).join('\n')
    const text = `version: 1\nplans: { free: { limits: [] } }\nsubjects:\n${subjects}\n`
    Object.defineProperty(store, 'isAway', { get: () => store.published.length === 1, configurable: true })
    const answer = await applyFile(text)
    expect([answer.statusCode, answer.json().detail]).toEqual([
      503,
      expect.stringContaining('first batches are in force'),
    ])
    expect(store.state.count('subject')).toBe(4_999)
    Object.defineProperty(store, 'isAway', { value: false })
    expect((await applyFile(text)).json().created).toBe(2)
    expect(store.state.count('subject')).toBe(5_001)
  })
})
