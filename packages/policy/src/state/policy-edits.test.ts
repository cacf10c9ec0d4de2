import { finish } from '@weir/core/steps.ts'
import { expect, test } from 'vitest'
import { deleteEntity, type Entity, type EntityChange, putEntity } from '../entities.ts'
import { createLimitResolver } from '../match/resolve-limits.ts'
import { pricesOf } from '../policy.ts'
import { diffSteps } from './diff-file.ts'
import { entitiesOf } from './entities-of.ts'
import { PolicyState } from './policy-state.ts'
import { policyLines } from './policy-text.ts'

const hash = (digit: string) => digit.repeat(64)

const text = `
version: 1
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  day: { algorithm: fixed_window, size: 5000, period: day }
plans:
  free: { limits: [minute] }
  top: { limits: [minute, day] }
upstreams: { api: { url: "http://a" } }
routes: [{ match: GET /a, upstream: api, limits: [day] }]
identity: { anonymous: top }
subjects:
  a: { plan: free, keys: [{ sha256: "${hash('1')}", id: one }, { sha256: "${hash('2')}", id: two }] }
  b: { plan: free, timeZone: Asia/Kathmandu }
  c: { plan: free, limits: { minute: { size: 7 } } }
`

function fileOf(policy: string): readonly Entity[] {
  const parsed = entitiesOf(policy, 'weir.yaml')
  if (parsed.kind === 'problems') throw new Error(JSON.stringify(parsed.problems))
  return parsed.entities
}

function stateOf(policy = text): PolicyState {
  const state = new PolicyState()
  expect(state.load(fileOf(policy))).toMatchObject({ kind: 'loaded', leftOut: [] })
  return state
}

const put = (kind: Entity['kind'], name: string, body: Entity['body']) =>
  putEntity({ kind, name, origin: 'admin', position: undefined, body })

/** What `checkSteps` and then `apply` say; the state must not change by a refusal. */
function refused(state: PolicyState, ...changes: EntityChange[]): readonly string[] {
  const before = state.policy
  const [checked, applied] = [finish(state.checkSteps(changes)), state.apply(changes)]
  expect(checked.kind === 'problems' && checked).toEqual(applied)
  expect(state.policy).toBe(before)
  return applied.kind === 'applied' ? [] : applied.problems.map(({ path, message }) => `${path}: ${message}`)
}

const diffOf = (state: PolicyState, entities: readonly Entity[]) => finish(diffSteps(state, entities))

const applied = (state: PolicyState, ...changes: EntityChange[]) => {
  const answer = state.apply(changes)
  if (answer.kind === 'problems') throw new Error(JSON.stringify(answer.problems))
  return answer
}

test('an entity that others still use is not deleted, and the answer says which ones use it', () => {
  const state = stateOf()
  expect(refused(state, deleteEntity('plan', 'free'))).toEqual([
    'plans.free: is still the plan of 3 subjects, such as a',
  ])
  expect(refused(state, deleteEntity('plan', 'top'))).toEqual(['plans.top: is still used by identity'])
  const unknown = stateOf(text.replace('anonymous: top', 'unknown: top'))
  expect(refused(unknown, deleteEntity('plan', 'top'))).toEqual(['plans.top: is still used by identity'])
  expect(refused(state, deleteEntity('limit', 'minute'))).toEqual([
    'limits.minute: is still used by 2 plans, such as free',
  ])
  expect(refused(state, deleteEntity('limit', 'day'))).toEqual([
    'limits.day: is still used by the plan top and the route GET /a',
  ])
  expect(refused(state, deleteEntity('upstream', 'api'))).toEqual(['upstreams.api: is still used by the route GET /a'])
  const tier = { algorithm: 'fixed_window', size: 1, window: '1m', plans: ['tier'] }
  const ofPlan = stateOf()
  applied(ofPlan, put('plan', 'tier', { limits: [] }), put('limit', 'tier', tier))
  expect(refused(ofPlan, deleteEntity('plan', 'tier'))).toContain('plans.tier: is still used by the limit tier')
  expect(refused(state, deleteEntity('subject', 'a'))).toEqual([
    'subjects.a: has 2 keys still; they must go in the same change',
  ])
})

const priced = `
${text.replace('free: { limits: [minute] }', 'free: { limits: [minute], prices: api }').replace('c: { plan: free', 'c: { plan: free, prices: own')}
prices:
  api: { currency: EUR, lines: [{ name: a, routes: [GET /a], measure: units, tiers: [{ unit_amount: "0.1" }] }] }
  own: { currency: EUR, flat: "9.00", lines: [] }
  unused: { currency: JPY, lines: [] }
`

test('a price list that a plan or subject names is not deleted, nor a route that a price list names', () => {
  const state = stateOf(priced)
  expect(refused(state, deleteEntity('price', 'api'))).toEqual(['prices.api: is still used by the plan free'])
  expect(refused(state, deleteEntity('price', 'own'))).toEqual(['subjects.c.prices: there is no price list "own"'])
  expect(refused(state, deleteEntity('route', 'GET /a'))).toEqual([
    'routes["GET /a"]: is still used by the price list api',
  ])
  expect(refused(state, put('plan', 'top', { limits: [], prices: 'ap' }))).toEqual([
    'plans.top.prices: there is no price list "ap"; did you mean api?',
  ])
  applied(state, deleteEntity('price', 'unused'))
  applied(state, deleteEntity('route', 'GET /a'), put('price', 'api', { currency: 'EUR', lines: [] }))
  expect([...state.policy.prices.keys()].toSorted()).toEqual(['api', 'own'])
})

test('a budget of an earlier release is kept as it is written, does nothing, and is known to be there', () => {
  const state = stateOf(priced)
  expect(state.hasFormerBudgets).toBe(false)
  // A limit may be called so.
  applied(
    state,
    put('limit', 'budget', { algorithm: 'fixed_window', size: 5, window: '1m', applies: 'all' }),
    put('subject', 'c', { plan: 'free', limits: { budget: { size: 2 } } }),
  )
  expect(state.hasFormerBudgets).toBe(false)
  const budget = { amount: '0.50', thresholds: ['50%'] }
  applied(state, put('subject', 'c', { plan: 'free', budget }))
  expect([state.hasFormerBudgets, state.policy.subjects.get('c')]).toEqual([
    true,
    expect.not.objectContaining({ budget }),
  ])
  applied(
    state,
    put('plan', 'free', { limits: ['minute'], prices: 'api', budget }),
    put('subject', 'c', { plan: 'free' }),
  )
  expect(state.hasFormerBudgets).toBe(true)
  const again = stateOf([...policyLines(state)].join('\n'))
  expect(again.get('plan', 'free')?.body.budget).toEqual(budget)
})

test('the price list of a subject is its own, else that of its plan, and a change of one is seen immediately', () => {
  const state = stateOf(priced)
  const priceOf = (id: string) => {
    const subject = state.policy.subjects.get(id)
    return subject === undefined ? undefined : pricesOf(state.policy, subject)?.name
  }
  expect(['a', 'c'].map(priceOf)).toEqual(['api', 'own'])
  applied(state, put('subject', 'c', { plan: 'free' }), put('subject', 'a', { plan: 'top' }))
  expect(['a', 'c'].map(priceOf)).toEqual([undefined, 'api'])
  applied(state, put('plan', 'free', { limits: ['minute'], prices: 'own' }))
  expect(['a', 'c'].map(priceOf)).toEqual([undefined, 'own'])
  applied(state, put('price', 'api', { currency: 'EUR', flat: '0.01', lines: [] }))
  expect(state.policy.prices.get('api')?.flat).toBe(10_000_000_000n)
  expect([...policyLines(state)]).toContain('  api: { currency: EUR, flat: "0.01", lines: [] }')
})

test('the difference between a file and the policy shows an edited price list, and nothing else', () => {
  const state = stateOf(priced)
  const changes = diffOf(state, fileOf(priced.replace('unit_amount: "0.1"', 'unit_amount: "0.2"')))
  expect(changes.map(({ kind, name }) => [kind, name])).toEqual([['price', 'api']])
  expect(diffOf(state, fileOf(priced))).toEqual([])
})

test('an entity can be deleted together with its users', () => {
  const state = stateOf()
  const moves = ['a', 'b', 'c'].map((id) => put('subject', id, { plan: 'top' }))
  applied(state, deleteEntity('plan', 'free'), ...moves)
  expect(state.policy.subjects.get('a')?.plan).toBe(state.policy.plans.get('top'))
  applied(state, deleteEntity('subject', 'a'), deleteEntity('key', hash('1')), deleteEntity('key', hash('2')))
  expect([state.policy.subjects.size, state.policy.keys.size, state.keyOfId('one')]).toEqual([2, 0, undefined])
})

test('a change that leaves an entity without the plan or limit that it names is refused with its path', () => {
  const state = stateOf()
  expect(refused(state, put('subject', 'd', { plan: 'fre' }))).toEqual([
    'subjects.d.plan: there is no plan "fre"; did you mean free?',
  ])
  expect(refused(state, put('subject', 'd', { plan: 'free', keys: [] }))).toEqual([
    'subjects.d.keys: is not a setting of a subject',
  ])
  expect(refused(state, put('plan', 'free', { limits: ['day'] }), put('route', 'GET /a', { upstream: 'api' }))).toEqual(
    [
      'subjects.c.limits.minute: does not apply to this subject: neither the plan free nor a route lists it, and it does not apply to all',
    ],
  )
  expect(refused(state, put('route', 'GET /:x', { cost: 0 }), put('route', 'GET /:y', {}))).toEqual([
    'routes["GET /:y"].match: matches the same requests as the route at routes["GET /:x"]',
  ])
})

test('a policy has one identity entity', () => {
  const state = stateOf()
  expect(refused(state, put('identity', 'other', {}))).toEqual(['identity: there is one, and its name is identity'])
})

test('a key is refused if another has its hash or id, if it has no owner, or if its subject has too many', () => {
  const state = stateOf()
  const key = (digit: string, body: Entity['body']) => put('key', hash(digit), body)
  expect(refused(state, key('3', { subject: 'b', id: 'one' }))).toEqual([
    'keys.333333333333: another key has the id one already',
  ])
  expect(refused(state, key('3', { subject: 'x', id: 'y' }))).toEqual(['keys.333333333333: there is no subject "x"'])
  expect(refused(state, key('3', { subject: 'b', id: 'y' }), key('4', { subject: 'b', id: 'y' }))).toEqual([
    'keys.444444444444: another key has the id y already',
  ])
  expect(refused(state, put('key', 'weir_secret', { subject: 'b', id: 'y' }))).toEqual([
    'keys: a key is identified by its SHA-256 as 64 lower-case hex digits (never by the key itself)',
  ])
  const many = Array.from({ length: 99 }, (_, at) =>
    put('key', `${at}`.padStart(64, '0'), { subject: 'a', id: `k${at}` }),
  )
  expect(refused(state, ...many)).toEqual(['subjects.a: would have 101 keys; a subject has at most 100'])
})

test('two keys may trade their ids, and a key its owner, in one change', () => {
  const state = stateOf()
  applied(state, put('key', hash('1'), { subject: 'a', id: 'two' }), put('key', hash('2'), { subject: 'b', id: 'one' }))
  expect([state.keyOfId('one'), state.keyOfId('two')]).toEqual([hash('2'), hash('1')])
  expect([state.keysOf('a'), state.keysOf('b')]).toEqual([[hash('1')], [hash('2')]])
  expect(state.policy.keys.get(hash('2'))).toMatchObject({ id: 'one', subject: { id: 'b' } })
})

test('the last subject of several that were alike must still fit the definitions', () => {
  const state = stateOf()
  applied(state, ...['d', 'e'].map((id) => put('subject', id, { plan: 'top' })))
  applied(state, deleteEntity('subject', 'd'), put('identity', 'identity', {}))
  expect(refused(state, deleteEntity('plan', 'top'))).toEqual(['plans.top: is still the plan of the subject e'])
})

test('a subject that is put again as it was must still fit the definitions', () => {
  const state = stateOf()
  for (let time = 0; time < 2; time += 1) applied(state, put('subject', 'd', { plan: 'top' }))
  applied(state, put('identity', 'identity', {}))
  expect(refused(state, deleteEntity('plan', 'top'))).toEqual(['plans.top: is still the plan of the subject d'])
})

test('the end of a key is stored as a time in UTC', () => {
  const state = stateOf()
  applied(state, put('key', hash('1'), { subject: 'a', id: 'one', expires: '2027-01-31T05:45:00+05:45' }))
  expect(state.policy.keys.get(hash('1'))?.expiresAtMs).toBe(Date.UTC(2027, 0, 31))
  expect(state.get('key', hash('1'))?.body).toEqual({ subject: 'a', id: 'one', expires: '2027-01-31T00:00:00.000Z' })
})

test('an edited limit leaves other limits, and plans without it, the same objects; subjects have the new plan', () => {
  const state = stateOf()
  const before = state.policy
  const { policy } = applied(state, put('limit', 'day', { algorithm: 'fixed_window', size: 9, period: 'day' }))
  expect(policy).not.toBe(before)
  expect(policy.limits.get('minute')).toBe(before.limits.get('minute'))
  expect(policy.plans.get('free')).toBe(before.plans.get('free'))
  expect(policy.limits.get('day')?.size).toBe(9)
  expect(policy.plans.get('top')?.limits[1]).toBe(policy.limits.get('day'))
  applied(state, put('subject', 'd', { plan: 'top' }))
  const [route] = policy.routes
  const subject = policy.subjects.get('d')
  if (route === undefined || subject === undefined) throw new Error('no route or subject')
  expect(createLimitResolver(policy)(subject, route).map(({ size }) => size)).toEqual([100, 9])
})

test('an edited limit or plan leaves routes without it the same objects, and the array too when there are no others', () => {
  const state = stateOf(text.replace('routes: [', 'routes: [{ match: GET /b }, '))
  const { routes, upstreams } = state.policy
  const minute = put('limit', 'minute', { algorithm: 'fixed_window', size: 9, window: '1m' })
  const { policy } = applied(state, minute, put('plan', 'free', { limits: ['minute', 'day'] }))
  expect([policy.routes === routes, policy.upstreams === upstreams]).toEqual([true, true])
  const next = applied(state, put('limit', 'day', { algorithm: 'fixed_window', size: 9, period: 'day' })).policy.routes
  expect(next.map((route, at) => route === routes[at])).toEqual([true, false])
  expect(next[1]).toEqual({ ...routes[1], limits: [state.policy.limits.get('day')] })
})

test('a route that is not edited must fit the definitions that are', () => {
  const state = stateOf()
  const names = Array.from({ length: 16 }, (_, at) => `l${at}`)
  const more = names.map((name) => put('limit', name, { algorithm: 'fixed_window', size: 9, window: '1m' }))
  expect(refused(state, ...more, put('plan', 'wide', { limits: names }))).toEqual([
    'routes["GET /a"].limits: adds up to 17 limits with the limits of plan wide and those that apply to all; a decision can have at most 16',
  ])
  expect(refused(state, ...more, put('route', 'GET /a', { match: 'GET /a' }))).toEqual([
    'routes["GET /a"].match: is set twice, first at routes["GET /a"]',
  ])
})

test('a request that began under a policy ends under it, whatever changes meanwhile', () => {
  const state = stateOf()
  const before = state.policy
  const resolve = createLimitResolver(before)
  applied(state, put('limit', 'minute', { algorithm: 'fixed_window', size: 1, window: '1m' }))
  applied(state, put('plan', 'new', { limits: [] }), put('subject', 'b', { plan: 'new' }))
  const [route, subject] = [before.routes[0], before.subjects.get('a')]
  if (route === undefined || subject === undefined) throw new Error('no route or subject')
  expect(resolve(subject, route)[0]?.size).toBe(100)
  expect(before.subjects.get('b')).toBeUndefined()
  expect(state.policy.subjects.get('b')?.plan.name).toBe('new')
})

test('subjects and keys change below one and the same policy', () => {
  const state = stateOf()
  const { policy } = state
  expect(
    applied(state, put('subject', 'd', { plan: 'top' }), put('key', hash('9'), { subject: 'd', id: 'd1' })),
  ).toEqual({ kind: 'applied', policy })
  expect(policy.keys.get(hash('9'))?.subject.plan).toBe(policy.plans.get('top'))
  applied(state, deleteEntity('key', hash('9')))
  expect(policy.keys.get(hash('9'))).toBeUndefined()
})

test('a bulk in any order keeps the last entity of a name, and leaves out and reports what does not fit', () => {
  const made = (kind: Entity['kind'], name: string, body: Entity['body']): Entity => ({
    kind,
    name,
    origin: 'admin',
    position: undefined,
    body,
  })
  const key = (digit: string, body: Entity['body']) => made('key', hash(digit), body)
  const subject = (name: string, plan: string) => made('subject', name, { plan })
  const state = new PolicyState()
  const answer = state.load([
    key('7', { subject: 'x', id: 'x1' }),
    subject('x', 'free'),
    subject('x', 'top'),
    subject('y', 'gone'),
    key('8', { subject: 'y', id: 'y1' }),
    key('9', { subject: 'nobody', id: 'z1' }),
    key('5', { subject: 'x', id: 'k' }),
    key('6', { subject: 'x', id: 'k' }),
    key('6', { subject: 'x', id: 'l' }),
    key('a', { subject: 'x', id: 'm' }),
    key('b', { subject: 'x', id: 'm' }),
    ...fileOf(text),
  ])
  expect(answer.kind === 'loaded' && answer.leftOut.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    'subjects.y.plan: there is no plan "gone"',
    'subjects.nobody: there is no such subject, but it has keys',
    'keys.m: another key has this id too',
  ])
  expect(state.policy.subjects.get('x')?.plan.name).toBe('top')
  expect(state.keysOf('x')).toEqual([hash('7'), hash('5'), hash('6'), hash('b')])
  expect([state.keyOfId('k'), state.keyOfId('l'), state.keyOfId('m')]).toEqual([hash('5'), hash('6'), hash('b')])
  expect([state.count('subject'), state.count('key')]).toEqual([4, 6])
})

test('definitions that are wrong as a whole are not loaded, and what was there stays', () => {
  const state = stateOf()
  const { policy } = state
  const wrong: Entity = { kind: 'plan', name: 'p', origin: 'file', position: 0, body: { limits: ['none'] } }
  expect(state.load([wrong])).toEqual({
    kind: 'problems',
    problems: [{ path: 'plans.p.limits[0]', message: 'there is no limit "none"' }],
  })
  expect(state.policy).toBe(policy)
})

test('pages go through all names in order', () => {
  const state = stateOf()
  const ids = Array.from({ length: 25 }, (_, at) => `s${(at * 7) % 25}`)
  applied(state, ...ids.map((id) => put('subject', id, { plan: 'free' })))
  const found: string[] = []
  for (;;) {
    const page = state.page('subject', found.at(-1) ?? '', 4)
    found.push(...page.map(({ name }) => name))
    if (page.length < 4) break
  }
  expect(found).toEqual([...ids, 'a', 'b', 'c'].sort())
})

test('a line that is inserted into a file is one change, and moved lines have the order of the file', () => {
  const state = stateOf()
  const more = text.replace('  day:', '  hour: { algorithm: fixed_window, size: 5, period: hour }\n  day:')
  const changes = diffOf(state, fileOf(more))
  expect(changes.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['limit hour'])
  applied(state, ...changes)
  expect([...state.policy.limits.keys()]).toEqual(['minute', 'hour', 'day'])
  const [minute = '', day = ''] = text.split('\n').slice(3, 5)
  applied(state, ...diffOf(state, fileOf(text.replace(minute, '').replace(day, `${day}\n${minute}`))))
  expect([...state.policy.limits.keys()]).toEqual(['day', 'minute'])
})

test('a file that is applied deletes what files had, and nothing else', () => {
  const state = stateOf()
  applied(state, put('subject', 'made', { plan: 'top' }), put('subject', 'b', { plan: 'top' }))
  const changes = diffOf(state, fileOf(text.replace(/ {2}c: .*/, '')))
  expect(changes.map(({ kind, name, entity }) => [kind, name, entity?.origin])).toEqual([
    ['subject', 'b', 'file'],
    ['subject', 'c', undefined],
  ])
})

test('a limit counts by a parameter only as long as its routes have it, whichever of the two is edited', () => {
  const limit = (by: string) => ({ algorithm: 'fixed_window', size: 1, window: '1m', by: [by] })
  const route = (match: string) => put('route', match, { limits: ['per-user'] })
  const state = stateOf()
  applied(state, put('limit', 'per-user', limit('path:user')), route('GET /u/:user'))
  expect(refused(state, put('limit', 'nowhere', limit('path:id')))).toEqual([
    'limits.nowhere.by: counts by path:id, but no route has a parameter :id',
  ])
  applied(state, put('route', 'GET /other/:id', {}))
  const has = 'has no parameter'
  expect(refused(state, put('limit', 'per-user', limit('path:id')))).toEqual([
    `routes["GET /u/:user"].limits[0]: counts by path:id, but GET /u/:user ${has} :id`,
  ])
  expect(refused(state, route('GET /a/b'))).toEqual([
    `routes["GET /a/b"].limits[0]: counts by path:user, but GET /a/b ${has} :user`,
  ])
})
