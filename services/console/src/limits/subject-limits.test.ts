import { WeirError } from '@weir/core/errors.ts'
import { expect, it, onTestFinished } from 'vitest'
import { nowMs, openConsole, openWithPolicy } from '../testing/open-console.ts'

const path = '/v1/subjects/acme/limits'
type Limits = { readonly limits: readonly { readonly name: string }[] }

it('says how each limit of a subject stands, and what a request would get', async () => {
  const { ask } = await openWithPolicy()
  const answer = await ask(`${path}?route=POST%20/v1/search`)
  const stands = { size: 100, used: 1, remaining: 99, reset_ms: 9, blocked_ms: 0, admits: true, retry_ms: 0 }
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    {
      subject: 'acme',
      plan: 'free',
      plan_title: null,
      plan_about: null,
      time_zone: 'UTC',
      anchor: 1,
      route: 'POST /v1/search',
      cost: 5,
      allowed: true,
      denied_by: '',
      limits: [
        {
          name: 'minute',
          title: null,
          about: null,
          because: ['plan free'],
          algorithm: 'fixed_window',
          mode: 'enforce',
          ...stands,
          capacity: 100,
          currency: null,
          window_ms: 60_000,
          period: null,
          by: ['subject'],
        },
        {
          name: 'per-ip',
          title: null,
          about: null,
          because: ['applies: all'],
          algorithm: 'fixed_window',
          mode: 'enforce',
          ...stands,
          size: 9,
          capacity: 9,
          currency: null,
          window_ms: 60_000,
          period: null,
          by: ['ip'],
        },
      ],
    },
  ])
})

it('says of a limit in the version of the subject that it is its own', async () => {
  const { ask } = await openWithPolicy()
  const { body } = await ask('/v1/subjects/acme')
  const own = { ...JSON.parse(body), limits: { minute: { size: 200 } } }
  expect((await ask('PUT /v1/subjects/acme', { body: own })).statusCode).toBe(200)
  expect((await ask(`${path}?limit=minute`)).json().limits).toMatchObject([
    { name: 'minute', because: ['plan free', "acme's own size instead of 100"] },
  ])
})

it('asks about one limit, at another cost, for the holder of the scope limits too', async () => {
  const { ask } = await openWithPolicy()
  const { token } = (await ask('POST /v1/tokens', { body: { name: 'support', scopes: ['limits'] } })).json()
  const { limits, cost } = (await ask(`${path}?limit=minute&cost=7`, { token })).json()
  expect([limits.map(({ name }: { name: string }) => name), cost]).toEqual([['minute'], 7])
})

it.each([
  ['/v1/subjects/acmee/limits', 404, 'did you mean acme?'],
  [`${path}?limit=minut`, 404, 'did you mean minute?'],
  [`${path}?key_id=other`, 404, 'There is no key of acme \\"other\\"'],
  [`${path}?ip=nowhere`, 400, 'address'],
  [`${path}?route=/v1/search`, 400, 'method'],
  [`${path}?cost=1000000001`, 400, 'cost'],
  [`${path}?colour=red`, 400, 'colour'],
])('refuses %s', async (request, status, words) => {
  const { ask } = await openWithPolicy()
  const answer = await ask(request)
  expect([answer.statusCode, answer.body]).toEqual([status, expect.stringContaining(words)])
})

it('reports that Redis is down or not configured', async () => {
  const down = async () => {
    throw new WeirError('REDIS_UNAVAILABLE', 'secret:6379')
  }
  for (const limits of [{ limits: undefined }, { peek: down }]) {
    const { app, ask, applyFile } = openConsole(limits)
    onTestFinished(() => app.close())
    await applyFile()
    const answer = await ask(path)
    expect([answer.statusCode, answer.json().type]).toEqual([503, 'urn:weir:problem:limits-unavailable'])
    expect(answer.body).not.toContain('secret')
  }
})

it('says to a customer that a limit above refuses, by name alone', async () => {
  const stands = { used: 9, remaining: 0, resetMs: 9, blockedMs: 0, retryMs: 9 }
  const { app, ask, applyFile } = openConsole({
    peek: async ({ limits }) =>
      limits.map(({ limit: { name, size } }) => ({ name, size, ...stands, admits: name !== 'pool' })),
  })
  onTestFinished(() => app.close())
  await applyFile()
  await ask('PUT /v1/limits/pool', { body: { algorithm: 'fixed_window', size: 9, period: 'month' } })
  await ask('PUT /v1/plans/company', { body: { limits: ['pool'] } })
  await ask('PUT /v1/subjects/group', { body: { plan: 'company' } })
  const { body } = await ask('/v1/subjects/acme')
  expect((await ask('PUT /v1/subjects/acme', { body: { ...JSON.parse(body), parent: 'group' } })).statusCode).toBe(200)
  const tokenOf = async (name: string, subject: string) =>
    (await ask('POST /v1/tokens', { body: { name, scopes: ['usage'], subjects: [subject] } })).json().token
  const { allowed, denied_by, limits } = (await ask(path, { token: await tokenOf('own', 'acme') })).json()
  const names = limits.map(({ name }: Limits['limits'][number]) => name)
  expect([allowed, denied_by, names]).toEqual([false, 'pool', ['minute', 'per-ip']])
  expect((await ask(`${path}?limit=pool`, { token: await tokenOf('again', 'acme') })).statusCode).toBe(404)
})

it('shows a customer no limit in shadow, and no count that others share; neither an address nor a cost it may name', async () => {
  const { ask } = await openWithPolicy()
  await ask('PUT /v1/limits/tried', {
    body: { algorithm: 'fixed_window', size: 9, window: '1m', mode: 'shadow', applies: 'all' },
  })
  const { token } = (
    await ask('POST /v1/tokens', { body: { name: 'own', scopes: ['usage'], subjects: ['acme'] } })
  ).json()
  const shown = (await ask(path, { token })).json<Limits>().limits
  expect(shown).toMatchObject([
    { name: 'minute', used: 1, remaining: 99, reset_ms: 9 },
    { name: 'per-ip', used: null, remaining: null, reset_ms: null },
  ])
  expect((await ask(path)).json<Limits>().limits.map(({ name }) => name)).toContain('tried')
  for (const named of ['ip=192.0.2.7', 'cost=50']) {
    expect((await ask(`${path}?${named}`, { token })).statusCode).toBe(403)
  }
  for (const limit of ['tried', 'trie', 'none']) {
    const answer = await ask(`${path}?limit=${limit}`, { token })
    expect([answer.statusCode, answer.body.includes('did you mean')]).toEqual([404, false])
  }
})

it('lets a customer ask ten times a second, twenty at once, and others as often as they like', async () => {
  let now = nowMs
  const { ask } = await openWithPolicy({ clock: { nowMs: () => now } })
  const { token } = (
    await ask('POST /v1/tokens', { body: { name: 'own', scopes: ['usage'], subjects: ['acme'] } })
  ).json()
  const statuses = async (count: number, asker: object) => {
    const answers = []
    for (let at = 0; at < count; at += 1) answers.push((await ask(path, asker)).statusCode)
    return answers
  }
  expect(await statuses(21, { token })).toEqual([...Array(20).fill(200), 429])
  now += 100
  expect(await statuses(2, { token })).toEqual([200, 429])
  expect(await statuses(30, {})).toEqual(Array(30).fill(200))
})

it.each(['ann lee', 'auth0|5f7c', 'a/b', '/a', '%2F', 'a;b?c#d', 'x'.repeat(255), '%'.repeat(255)])(
  'finds the subject %s by its id in the address and in a question',
  async (id) => {
    const { ask } = await openWithPolicy()
    await ask(`PUT /v1/subjects/${encodeURIComponent(id)}`, { body: { plan: 'free' } })
    const found = await ask(`/v1/subjects/${encodeURIComponent(id)}/limits`)
    expect([found.statusCode, found.json().subject]).toEqual([200, id])
    expect((await ask(`/v1/usage?subject=${encodeURIComponent(id)}`)).statusCode).toBe(200)
  },
)
