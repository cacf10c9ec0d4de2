import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { beforeEach, expect, inject, test } from 'vitest'
import { folderForTest } from '../support/opened.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { runWeir } from '../support/weir-up.ts'

/** No other test has a subject of this name in the same Redis. */
let acme: string
let policyFile: string
let policyText: string

beforeEach(async () => {
  acme = `acme-${randomUUID().slice(0, 8)}`
  const dir = await folderForTest('limits')
  policyFile = join(dir, 'weir.yaml')
  policyText = `
version: 1
plans: { free: { limits: [minute, day] } }
limits:
  minute: { algorithm: sliding_log, size: 3, window: 1m, block: 10m }
  day: { algorithm: fixed_window, size: 100, period: day, mode: shadow }
  search: { algorithm: token_bucket, size: 60, window: 1h, burst: 8, by: [subject, route, method] }
  per-ip: { algorithm: fixed_window, size: 9, window: 366d, by: [ip], applies: all }
routes: [{ match: "* /v1/search", cost: 2, limits: [search] }]
subjects: { ${acme}: { plan: free, timeZone: Asia/Kathmandu, limits: { search: { size: 120 } } } }
`
  await writeFile(policyFile, policyText)
})

/** Decides as the ingress would. */
async function use(times: number, method: string, ip: string): Promise<(string | undefined)[]> {
  const policy = requirePolicy(policyText, 'weir.yaml')
  const [subject, route] = [policy.subjects.get(acme), policy.routes[0]]
  if (subject === undefined || route === undefined) throw new Error('the policy has neither')
  const redis = await openLimiterRedis(inject('redisUrl'))
  const store = new RedisLimitStore({
    redis,
    clock: { nowMs: () => Date.now() },
    periodBoundaries: createBoundaryCache(),
    deadlineMs: 5_000,
  })
  const scope = { subject: acme, keyId: '', ip, route: route.template, method }
  const limits = createLimitResolver(policy)(subject, route)
  const outcomes: string[] = []
  for (let n = 0; n < times; n += 1) {
    const decision = await store.decide({ scope, cost: 1, peek: false, limits, timeZone: subject.timeZone, anchor: 1 })
    outcomes.push(decision.reason)
  }
  store.close()
  return outcomes
}

async function weir(args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const asked = ['--policy', policyFile, '--subject', acme, ...args.slice(1)]
  return await runWeir([...(args[0] ?? '').split(' '), ...asked], { WEIR_REDIS_URL: inject('redisUrl') })
}

const ip = () => `2001:db8:${randomUUID().slice(0, 4)}:${randomUUID().slice(0, 4)}::1`
const scopeOfIp = (address: string) => `${address.replaceAll(/:0+(?=[0-9a-f])/g, ':').replace('::1', '::')}/64`

interface Shown {
  readonly name: string
  readonly counts: { used: number; remaining: number; blocked_ms: number; scope: string }[] | null
}

const byName = (limits: Shown[]) => new Map(limits.map((limit) => [limit.name, limit.counts]))

test('a limit can be explained, looked at, unblocked and reset, and each changes only what it says', async () => {
  const address = ip()
  expect(await use(5, 'POST', scopeOfIp(address))).toEqual(['ok', 'ok', 'ok', 'limit', 'blocked'])

  const explained = await weir(['explain', '--route', 'POST /v1/search', '--ip', address, '--json'])
  expect([explained.code, explained.stderr]).toEqual([0, ''])
  const told = JSON.parse(explained.stdout)
  expect(told).toMatchObject({ subject: acme, plan: 'free', route: '* /v1/search', cost: 2 })
  expect(told).toMatchObject({ allowed: false, denied_by: 'minute' })
  expect(told.limits.map(({ name, because, own_version, mode }: never) => [name, because, own_version, mode])).toEqual([
    ['minute', ['plan free'], false, 'enforce'],
    ['day', ['plan free'], false, 'shadow'],
    ['search', ['route * /v1/search'], true, 'enforce'],
    ['per-ip', ['applies: all'], false, 'enforce'],
  ])
  const before = byName(told.limits)
  expect(before.get('minute')).toMatchObject([{ used: 3, remaining: 0, key: `weir:1:{${acme}}:minute` }])
  expect(before.get('minute')?.[0]?.blocked_ms).toBeGreaterThan(590_000)
  expect(before.get('search')).toMatchObject([{ used: 3, scope: 'route=* /v1/search, method=POST' }])
  expect(before.get('per-ip')).toMatchObject([{ used: 3, remaining: 6 }])

  const unblocked = await weir(['limits unblock', '--json'])
  expect(JSON.parse(unblocked.stdout).changed).toContainEqual({ name: 'minute', keys: 1, used_up: 1 })
  expect(unblocked.stderr).toContain(`"weir limits reset --subject ${acme} --limit minute" forgets its count`)
  expect(unblocked.stderr).toContain('no audit has it')
  const after = byName(JSON.parse((await weir(['limits peek', '--json', '--limit', 'minute'])).stdout).limits)
  expect(after.get('minute')).toMatchObject([{ used: 3, blocked_ms: 0 }])

  const reset = await weir(['limits reset', '--json'])
  expect(JSON.parse(reset.stdout)).toMatchObject({
    changed: [
      { name: 'minute', keys: 1 },
      { name: 'day', keys: 1 },
      { name: 'search', keys: 1 },
    ],
    left: [{ name: 'per-ip' }],
  })
  const last = byName(JSON.parse((await weir(['limits peek', '--json', '--ip', address])).stdout).limits)
  expect(last.get('minute')).toMatchObject([{ used: 0 }])
  expect(last.get('per-ip')).toMatchObject([{ used: 3 }])
  expect(last.get('search')).toEqual([])
})

test('counts of several scopes are found by searching, and reset with the limit or one by one', async () => {
  const address = ip()
  await use(1, 'GET', scopeOfIp(address))
  await use(1, 'POST', scopeOfIp(address))
  const peek = async () => byName(JSON.parse((await weir(['limits peek', '--json'])).stdout).limits)
  expect((await peek()).get('search')?.map(({ scope }) => scope)).toEqual([
    'route=* /v1/search, method=GET',
    'route=* /v1/search, method=POST',
  ])
  const one = await weir(['limits reset', '--limit', 'search', '--route', 'GET /v1/search'])
  expect([one.code, one.stdout]).toEqual([0, `reset search of ${acme}: 1 key removed\n`])
  expect((await peek()).get('search')).toHaveLength(1)
  expect((await peek()).get('per-ip')).toBeNull()
  expect((await weir(['limits reset', '--ip', address, '--limit', 'per-ip'])).stdout).toContain('1 key removed')
})

test('for people there is a table, and one line says what the request would get now', async () => {
  const { code, stdout } = await weir(['explain', '--route', 'POST /v1/search', '--ip', ip()])
  expect(code).toBe(0)
  expect(stdout).toContain(`${acme}: plan free, Asia/Kathmandu. Route * /v1/search, cost 2.`)
  expect(stdout).toMatch(/search +route \* \/v1\/search, own version +token_bucket +120 in 1 h, burst 8 +0 +8 +now/)
  expect(stdout).toContain('Now: would be admitted.')
  expect((await weir(['explain', '--route', 'GET /'])).stdout).toContain('Now: depends on what was not named')
})

test.each([
  ['a subject that is nearly right', ['--subject', 'ACME'], 'did you mean acme', 2],
  ['a limit that does not apply', ['--limit', 'minut'], 'did you mean minute?', 2],
  ['a route without a method', ['--route', '/v1/search'], '--route takes a method and a path', 2],
  ['an address that is none', ['--ip', 'here'], '--ip takes an IPv4 or IPv6 address', 2],
])('%s is told as one', async (_, args, message, code) => {
  const named = args.map((text) => (text === 'ACME' ? acme.replace('acme-', 'ACME_') : text))
  const result = await weir(['limits peek', ...named])
  expect([result.code, result.stderr.includes(message), result.stdout]).toEqual([code, true, ''])
})

test('a Redis that is away, or not named at all, is told within seconds', async () => {
  const asked = ['limits', 'peek', '--policy', policyFile, '--subject', acme]
  const away = await runWeir(asked, { WEIR_REDIS_URL: 'redis://127.0.0.1:1' })
  expect([away.code, away.stderr.includes('[REDIS_UNAVAILABLE]')]).toEqual([1, true])
  const data = join(policyFile, '..', 'none')
  const unnamed = await runWeir([...asked, '--data', data], { WEIR_REDIS_URL: '' })
  expect([unnamed.code, unnamed.stderr.includes('No Redis to ask')]).toEqual([2, true])
})

test('the Redis of a running weir up is found by its state file', async () => {
  const data = join(policyFile, '..')
  await writeFile(join(data, 'state.json'), JSON.stringify({ ready: true, redis: inject('redisUrl') }))
  const args = ['limits', 'peek', '--policy', policyFile, '--subject', acme, '--data', data, '--json']
  expect((await runWeir(args, { WEIR_REDIS_URL: '' })).code).toBe(0)
})
