import { WeirError } from '@weir/core/errors.ts'
import { describe, expect, it } from 'vitest'
import { openWithPolicy } from '../testing/open-console.ts'

describe.each(['reset', 'unblock'])('POST /v1/subjects/{id}/limits/%s', (change) => {
  const request = `POST /v1/subjects/acme/limits/${change}`

  it('changes the counts, notifies every process, and is in the audit', async () => {
    const { ask, counts, store } = await openWithPolicy()
    const answer = await ask(request, { body: { limit: 'per-ip', ip: '2001:db8::1', route: 'POST /v1/search' } })
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      { subject: 'acme', changed: [{ name: 'minute', keys: 1, used_up: 0 }], left: [] },
    ])
    const [asked, , what] = counts[0] ?? []
    expect([what, asked?.limits.map(({ limit }) => limit.name), asked?.scope]).toMatchObject([
      change,
      ['per-ip'],
      { ip: '2001:db8::/64', route: 'POST /v1/search' },
    ])
    expect(store.published.at(-1)?.map(({ key }) => key.replace(/change\/.*/, 'change'))).toEqual([
      'reset/acme',
      'reset/acme',
      'change',
    ])
    expect((await ask('/v1/changes?limit=1')).json().items[0].summary[0]).toEqual({
      what: change,
      kind: 'subject',
      name: 'acme',
    })
  })

  it('resets everything that is the subject’s own when the body is left out', async () => {
    const { ask } = await openWithPolicy()
    expect((await ask(request)).statusCode).toBe(200)
  })

  it.each([
    [{ limit: 'minut' }, 404, 'did you mean minute?'],
    [{ ip: 'nowhere' }, 400, 'address'],
    [{ route: '/v1/search' }, 400, 'method'],
    [{ colour: 'red' }, 400, 'additional properties: "colour"'],
  ])('refuses %j', async (body, status, words) => {
    const { ask, counts } = await openWithPolicy()
    const answer = await ask(request, { body })
    expect([answer.statusCode, answer.json().detail]).toEqual([status, expect.stringContaining(words)])
    expect(counts).toEqual([])
  })

  it('knows only subjects of the policy', async () => {
    const { ask } = await openWithPolicy()
    const answer = await ask(`POST /v1/subjects/acmee/limits/${change}`)
    expect([answer.statusCode, answer.json().detail]).toEqual([404, expect.stringContaining('did you mean acme?')])
  })

  it('reports that Redis is down or not configured, and does not show what Redis said', async () => {
    const changeCounts = async () => Promise.reject(new WeirError('REDIS_UNAVAILABLE', 'password'))
    for (const fake of [{ limits: undefined }, { changeCounts }]) {
      const { ask, store } = await openWithPolicy(fake)
      const answer = await ask(request)
      expect([answer.statusCode, answer.json().type]).toEqual([503, 'urn:weir:problem:limits-unavailable'])
      expect(answer.body).not.toContain('password')
      expect(store.published).toHaveLength(1)
    }
  })

  it('reports that the counts were changed without an audit record when Kafka is down', async () => {
    const { ask, counts, store } = await openWithPolicy()
    store.isAway = true
    const answer = await ask(request)
    expect([answer.statusCode, counts.length]).toEqual([503, 1])
    expect(answer.json().detail).toContain('Redis made the change, but Kafka did not confirm the audit entry')
  })
})
