import { randomUUID } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { createMemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { openMemoryIngress, sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { RedisSettlements } from '@weir/redis/settlements.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createSeededRandom } from '../support/seeded-random.ts'
import { openLimiterRedis } from '../support/test-redis.ts'

/** A company with two teams of two; every name has the mark of its test, for the Redis is everybody's. */
const policyText = (mark: string, more = '') => `
version: 1
plans:
  company: { limits: [company-month] }
  team: { limits: [team-month] }
  member: { limits: [member-month, burst] }
limits:
  company-month: { algorithm: fixed_window, size: 100, period: month }
  team-month: { algorithm: fixed_window, size: 60, period: month }
  member-month: { algorithm: fixed_window, size: 25, period: month }
  burst: { algorithm: token_bucket, size: 1000, window: 1h }
subjects:
  acme-${mark}: { plan: company, timeZone: Asia/Kathmandu ${more} }
  red-${mark}: { plan: team, parent: acme-${mark}, limits: { team-month: { size: 40 } } }
  blue-${mark}: { plan: team, parent: acme-${mark} }
${['r1', 'r2', 'b1', 'b2'].map((one) => `  ${one}-${mark}: { plan: member, parent: ${one.startsWith('r') ? 'red' : 'blue'}-${mark}, keys: [{ sha256: "${sha256(`${one}-${mark}`)}" }] }`).join('\n')}
tokens: { ci: { sha256: "${sha256('ci-token')}", scopes: [check] } }
`

async function open(more?: string) {
  const mark = randomUUID()
  const redis = await openLimiterRedis(inject('redisUrl'))
  const log = createMemoryDecisionLog()
  const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 20_000 }
  const inner = new RedisLimitStore({ redis, ...common })
  const settlements = new RedisSettlements({ redis, owner: 'one', answerMs: 20_000 })
  const apps = await openMemoryIngress(policyText(mark, more), { store: inner, log, clock: systemClock, settlements })
  onTestFinished(async () => {
    await apps.proxy.close()
    await apps.api.close()
    inner.close()
  })
  const named = (name: string) => `${name}-${mark}`
  const post = async (url: string, payload: object, key = 'ci-token') => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await apps.api.inject({ method: 'POST', url, headers, payload: JSON.stringify(payload) })
    return { status: answer.statusCode, headers: answer.headers, body: answer.json() }
  }
  const check = (name: string, body: object = {}) => post('/v1/check', { subject: named(name), ...body })
  const used = async (name: string) => {
    const { body } = await check(name, { peek: true, cost: 0 })
    return Object.fromEntries(body.limits.map((one: { name: string; used: number }) => [one.name, one.used]))
  }
  const replace = (text: string) => {
    apps.ports.policy.replace(requirePolicy(text, 'weir.yaml'))
  }
  return { mark, redis, log, named, post, check, used, replace }
}

type Limit = Readonly<Record<'name' | 'at', string>> & { readonly used: number }

test('each request counts at its member, team and company, and the first of them that is full refuses', async () => {
  const { named, check, used, log, redis, mark } = await open()
  const random = createSeededRandom()
  const sizes: Readonly<Record<string, number>> = { acme: 100, red: 40, blue: 60, r1: 25, r2: 25, b1: 25, b2: 25 }
  const limitOf = (name: string) => (name === 'acme' ? 'company' : name.length > 2 ? 'team' : 'member')
  const counts = new Map<string, number>()
  let refused = 0
  for (let round = 0; round < 120; round += 1) {
    const member = random.pick(['r1', 'r2', 'b1', 'b2'])
    const cost = random.integer(1, 4)
    const chain = [member, member.startsWith('r') ? 'red' : 'blue', 'acme']
    const full = chain.find((one) => (counts.get(one) ?? 0) + cost > (sizes[one] ?? 0))
    const { body } = await check(member, { cost })
    expect([body.allowed, body.denied_by]).toEqual([
      full === undefined,
      full === undefined ? '' : `${limitOf(full)}-month`,
    ])
    if (full === undefined) for (const one of chain) counts.set(one, (counts.get(one) ?? 0) + cost)
    else refused += 1
    const shown = body.limits.filter(({ name }: Limit) => name !== 'burst' && full === undefined)
    expect(shown.map(({ name, used: units, at }: Limit) => [name, units, at])).toEqual(
      full === undefined
        ? chain.map((one) => [`${limitOf(one)}-month`, counts.get(one), one === member ? undefined : named(one)])
        : [],
    )
  }
  expect(refused).toBeGreaterThan(10)
  expect(await used('r2')).toMatchObject({ 'member-month': counts.get('r2') ?? 0, 'company-month': counts.get('acme') })
  const [admitted] = log.records
  expect(admitted).toMatchObject({ parents: [expect.stringMatching(/^(?:red|blue)-/), named('acme')] })
  expect(admitted?.limits).toMatchObject([
    { name: 'member-month' },
    { name: 'burst' },
    { name: 'team-month', at: expect.stringMatching(/^(?:red|blue)-/) },
    { name: 'company-month', at: named('acme') },
  ])
  const keys = await redis.keys(`weir:1:*${mark}*`)
  expect(keys.filter((key) => !key.startsWith(`weir:1:{${named('acme')}}:`))).toEqual([])
  expect(keys).toContain(`weir:1:{${named('acme')}}:team-month:of=${named('red')}`)
})

test("a member's own answers say nothing of what those above have left, and name the one that refuses", async () => {
  const { named, check, post } = await open()
  await check('b1', { cost: 24 })
  await check('b2', { cost: 24 })
  const own = await post('/v1/check', { cost: 1 }, named('b1'))
  expect(own.body.limits.map(({ name }: Limit) => name)).toEqual(['member-month', 'burst'])
  expect(JSON.stringify([own.headers, own.body])).not.toMatch(/team|company|acme/)
  await check('r1', { cost: 25 })
  await check('r2', { cost: 15 })
  const refusal = await post('/v1/check', {}, named('r2'))
  expect(refusal.body).toMatchObject({ allowed: false, denied_by: 'team-month' })
  expect(JSON.stringify(refusal.headers)).not.toMatch(/team-month|company|acme/)
})

test('what is held is settled at every level, in one record that says where', async () => {
  const { named, check, post, used, log } = await open()
  const { body } = await check('r1', { cost: 20, settle: '5m' })
  expect(await used('r2')).toMatchObject({ 'team-month': 20, 'company-month': 20 })
  expect((await post('/v1/settle', { subject: named('r2'), id: body.id, cost: 1 })).status).toBe(404)
  const settled = await post('/v1/settle', { subject: named('r1'), id: body.id, cost: 6 })
  const at = settled.body.limits.map(({ name, at, used }: Limit) => [name, at, used])
  expect(at).toEqual([
    ['member-month', undefined, 6],
    ['burst', undefined, 6],
    ['team-month', named('red'), 6],
    ['company-month', named('acme'), 6],
  ])
  expect(await used('b1')).toMatchObject({ 'member-month': 0, 'team-month': 0, 'company-month': 6 })
  const correction = log.records.at(-1)
  expect(correction).toMatchObject({ corrects: body.id, adjustment: -14, parents: [named('red'), named('acme')] })
  expect(correction?.limits).toMatchObject([{}, {}, { at: named('red') }, { at: named('acme') }])
})

test("a member's own key asks and settles for itself alone", async () => {
  const { named, check, post, used } = await open()
  expect((await post('/v1/check', { cost: 2 }, named('r1'))).status).toBe(403)
  const { body } = await post('/v1/check', { settle: '5m' }, named('r1'))
  expect((await post('/v1/settle', { id: body.id, cost: 0 }, named('r1'))).status).toBe(200)
  expect(await used('r1')).toMatchObject({ 'member-month': 0, 'team-month': 1, 'company-month': 1 })
  expect((await check('r1', { cost: 2 })).status).toBe(200)
})

test('an idempotency key is its own for each member of a tree', async () => {
  const { check, used } = await open()
  const once = { cost: 3, idempotency_key: 'order-1' }
  const [first, other, again] = [await check('r1', once), await check('r2', once), await check('r1', once)]
  expect(other.body.id).not.toBe(first.body.id)
  expect(again.body.id).toBe(first.body.id)
  expect(await used('r1')).toMatchObject({ 'member-month': 3, 'team-month': 6, 'company-month': 6 })
})

test('who is suspended takes all below along', async () => {
  const { check } = await open(', suspended: unpaid')
  expect((await check('b2')).body).toMatchObject({ allowed: false, reason: 'blocked', suspended: 'unpaid' })
})

test('a subject that is moved counts at its new ancestors from then on, and keeps its own count within the tree', async () => {
  const { mark, named, check, used, replace } = await open()
  await check('r1', { cost: 10 })
  const moved = policyText(mark).replace(
    `r1-${mark}: { plan: member, parent: red-`,
    `r1-${mark}: { plan: member, parent: blue-`,
  )
  replace(moved)
  await check('r1', { cost: 5 })
  expect(await used('r1')).toMatchObject({ 'member-month': 15, 'team-month': 5, 'company-month': 15 })
  expect(await used('r2')).toMatchObject({ 'team-month': 10, 'company-month': 15 })
  // Out of the tree its counts begin in a slot of its own; the console restores its calendar limits.
  replace(
    moved.replace(
      `, parent: blue-${mark}, keys: [{ sha256: "${sha256(named('r1'))}"`,
      `, keys: [{ sha256: "${sha256(named('r1'))}"`,
    ),
  )
  await check('r1', { cost: 1 })
  expect(await used('r1')).toEqual({ 'member-month': 1, burst: 1 })
  expect(await used('b1')).toMatchObject({ 'company-month': 15 })
})

test("a key's own size holds for that key alone", async () => {
  const mark = randomUUID()
  const redis = await openLimiterRedis(inject('redisUrl'))
  const common = { clock: systemClock, periodBoundaries: createBoundaryCache(), deadlineMs: 20_000 }
  const store = new RedisLimitStore({ redis, ...common })
  const keys = ['laptop', 'agent'].map((id) => {
    const own = id === 'agent' ? ', limits: { a-key: { size: 2 } }' : ''
    return `{ sha256: "${sha256(`${id}-${mark}`)}", id: ${id}${own} }`
  })
  const text = `
version: 1
plans: { member: { limits: [a-key] } }
limits: { a-key: { algorithm: fixed_window, size: 5, window: 1h, by: [key] } }
subjects: { u-${mark}: { plan: member, keys: [${keys.join(', ')}] } }
`
  const apps = await openMemoryIngress(text, { store, log: createMemoryDecisionLog(), clock: systemClock })
  onTestFinished(async () => {
    await apps.proxy.close()
    await apps.api.close()
    store.close()
  })
  const admitted = async (id: string) => {
    const headers = { authorization: `Bearer ${id}-${mark}`, 'content-type': 'application/json' }
    const answers = Array.from({ length: 8 }, () =>
      apps.api.inject({ method: 'POST', url: '/v1/check', headers, payload: '{}' }),
    )
    return (await Promise.all(answers)).filter((answer) => answer.json().allowed).length
  }
  expect([await admitted('agent'), await admitted('laptop')]).toEqual([2, 5])
})
