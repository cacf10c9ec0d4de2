import type { Block, BlockPage } from '@weir/api/limits.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { send } from '../support/gateways/send.ts'
import { forFile } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { type RunningIngress, startIngress } from '../support/start-ingress.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { until } from '../support/until.ts'
import { runWeir } from '../support/weir-up.ts'

/** By the form in which their ingress records addresses. */
const forms = ['full', 'prefix', 'hash', 'off'] as const
type Form = (typeof forms)[number]
const keyOf = (form: string) => ({ sha256: sha256(`${form}-key`), id: `${form}-1` })
/** Longer than any run: no count begins again in the middle of one. */
const once = { algorithm: 'fixed_window', size: 1, window: '7d' }
const policy = {
  version: 1,
  identity: { trustedProxies: ['127.0.0.1/32'] },
  plans: { free: { limits: ['otp', 'team'] }, all: { limits: ['own'] }, shared: { limits: ['flood'] } },
  limits: {
    otp: { ...once, by: ['key', 'ip'], block: '10m' },
    team: { ...once, size: 2, by: ['subject', 'header:x-team'], block: ['1m', '1h'] },
    own: once,
    flood: { ...once, size: 3, by: ['ip'], block: '5m' },
    'per-ip': { ...once, size: 100, by: ['ip'], applies: 'all' },
  },
  subjects: {
    ...Object.fromEntries(forms.map((form) => [form, { plan: 'free', keys: [keyOf(form)] }])),
    carl: { plan: 'shared', keys: [keyOf('carl')] },
    bolt: { plan: 'all', keys: [keyOf('bolt')], limits: { own: { block: '3m' } } },
  },
}

const ingresses = new Map<Form, RunningIngress>()
const redis = await forFile(startServer(redisServer))
const stack = await forFile(startConsoleStack({ policy, environment: { WEIR_REDIS_URL: redis.address } }))
const desk = stack.desk
const servers = { WEIR_KAFKA_BROKERS: stack.kafka.address, WEIR_REDIS_URL: redis.address }
const metering = await startServiceProcess('metering', { ...servers, WEIR_CLICKHOUSE_URL: stack.tables.url })
for (const form of forms) {
  const of = { ...servers, WEIR_POLICY_FILE: '/nowhere/weir.yaml', WEIR_RECORD_ADDRESS: form }
  ingresses.set(form, await startIngress(of))
}
afterAll(async () => {
  for (const ingress of ingresses.values()) await ingress.close()
  await metering.kill('SIGTERM')
})

async function ask(form: Form, address: string, more: Readonly<Record<string, string>> = {}): Promise<number> {
  const headers = { 'x-api-key': `${form}-key`, 'x-forwarded-for': address, ...more }
  return (await send(ingresses.get(form)?.api ?? '', { path: '/v1/authorize/codes', headers, from: '127.0.0.1' }))
    .status
}
/** Uses up the limit, is refused, and is refused again during the block. */
async function exceed(form: Form, address: string) {
  const more = { 'x-team': address }
  expect([await ask(form, address, more), await ask(form, address, more), await ask(form, address, more)]).toEqual([
    200, 429, 429,
  ])
}

const list = async (query = '') => {
  const { status, body } = await desk.ask<BlockPage>(`GET /v1/blocks?${query}`)
  expect([status, body.complete]).toEqual([200, true])
  return body.items
}
/** The blocks of a question, once there are so many and every refusal is metered. */
async function listed(query: string, count: number): Promise<readonly Block[]> {
  const found = async () => {
    const items = await list(query)
    return items.length === count && items.every(({ refusals }) => refusals === 2) ? items : undefined
  }
  const items = await waitUntil(found, { deadlineMs: 30_000, everyMs: 100 })
  return items ?? expect.fail(`${query}: ${JSON.stringify(await list(query))}`)
}

const addresses = ['192.0.2.7', '192.0.2.8', '2001:db8::/64']
test('each address that one key was blocked at is listed with what set its block, and can be asked for', async () => {
  for (const address of addresses) await exceed('full', address.replace('/64', '1'))
  const items = await listed('subject=full&limit=otp', 3)
  expect(items.map(({ ip }) => ip).toSorted()).toEqual(addresses)
  for (const item of items) {
    expect(item).toMatchObject({ limit: 'otp', subject: 'full', scope: { key: 'full-1', ip: item.ip }, refusals: 2 })
    const lastsMs = Date.parse(item.until) - Date.parse(item.since)
    expect(Math.abs(lastsMs - 600_000)).toBeLessThan(5_000)
    // Never `-`: a command line would take the id for a flag.
    expect(item.id).toMatch(/^A/)
    const { status, body } = await desk.ask<{ reason: string }>(`GET /v1/decisions/${item.decision}`)
    expect([status, body.reason]).toEqual([200, 'limit'])
  }
  expect((await list('ip=192.0.2.8')).map(({ ip }) => ip)).toEqual(['192.0.2.8'])
  expect((await list('ip=2001:db8::77')).map(({ ip }) => ip)).toEqual(['2001:db8::/64'])
  expect([await list('ip=192.0.2.9'), await list('limit=per-ip'), await list('subject=none')]).toEqual([[], [], []])
})

test.each(['prefix', 'hash', 'off'] as const)(
  'with addresses recorded as %s every block is found, and its answer has no address',
  async (form) => {
    await exceed(form, '198.51.100.1')
    await exceed(form, '198.51.100.2')
    const found = async () => {
      const items = await list(`subject=${form}&limit=otp`)
      return items.length === 2 ? items : undefined
    }
    const items = (await waitUntil(found, { deadlineMs: 30_000, everyMs: 100 })) ?? []
    expect(items.map(({ ip, limit }) => [ip, limit])).toEqual([
      [null, 'otp'],
      [null, 'otp'],
    ])
    expect(new Set(items.map(({ id }) => id)).size).toBe(2)
    expect(JSON.stringify(items)).not.toContain('198.51.100.1')
    const text = await fetch(`${desk.environment.WEIR_CONSOLE_URL}/v1/blocks?format=text&subject=${form}`, {
      headers: { authorization: `Bearer ${desk.environment.WEIR_ADMIN_TOKEN}` },
    })
    expect([text.status, JSON.parse(await text.text())]).toMatchObject([
      409,
      { type: 'urn:weir:problem:addresses-hidden', detail: expect.stringContaining('WEIR_RECORD_ADDRESS') },
    ])
  },
)

test('a block of a value that records hide, and one of a subject’s own version of a limit, are listed', async () => {
  const team = async () => await ask('full', '203.0.113.1', { 'x-team': 'red' })
  expect([await team(), await team()]).toEqual([200, 429])
  for (let n = 2; n < 5; n += 1) await ask('full', `203.0.113.${n}`, { 'x-team': 'red' })
  const own = async () =>
    (await send(ingresses.get('full')?.api ?? '', { path: '/v1/authorize/', headers: { 'x-api-key': 'bolt-key' } }))
      .status
  expect([await own(), await own(), await own()]).toEqual([200, 429, 429])
  const [item] = await listed('subject=bolt', 1)
  expect(item).toMatchObject({ limit: 'own', subject: 'bolt', ip: null, scope: {} })
  const hidden = await waitUntil(async () => (await list('limit=team'))[0], { deadlineMs: 30_000, everyMs: 100 })
  expect(hidden).toMatchObject({
    subject: 'full',
    ip: null,
    scope: { 'header:x-team': expect.stringMatching(/^sha256:/) },
  })
})

test('firewalls get one address a line, and nothing while the list is the same', async () => {
  const get = async (headers: Readonly<Record<string, string>> = {}) =>
    await fetch(`${desk.environment.WEIR_CONSOLE_URL}/v1/blocks?format=text&subject=full&limit=otp`, {
      headers: { authorization: `Bearer ${desk.environment.WEIR_ADMIN_TOKEN}`, ...headers },
    })
  const first = await get()
  const text = await first.text()
  expect(text.split('\n')).toEqual(expect.arrayContaining([...addresses, '']))
  expect(text.split('\n').toSorted()).toEqual(['', ...text.split('\n').slice(0, -1)])
  expect([first.headers.get('content-type'), first.headers.get('weir-complete')]).toEqual([
    'text/plain; charset=utf-8',
    'true',
  ])
  const tag = { 'if-none-match': `"other", ${first.headers.get('etag')}` }
  const same = await get(tag)
  expect([same.status, await same.text()]).toEqual([304, ''])
  await exceed('full', '192.0.2.99')
  await listed('ip=192.0.2.99', 1)
  const changed = await get(tag)
  expect([changed.status, (await changed.text()).includes('192.0.2.99\n')]).toEqual([200, true])
})

test('a block that is no longer in Redis is not listed, whatever records say', async () => {
  await exceed('full', '192.0.2.50')
  await listed('ip=192.0.2.50', 1)
  const client = await openLimiterRedis(redis.address)
  expect(await client.del('weir:1:{full}:otp:key=full-1:ip=192%2E0%2E2%2E50:blocked')).toBe(1)
  expect(await list('ip=192.0.2.50')).toEqual([])
})

test.each(['full', 'hash', 'off'] as const)(
  'with addresses recorded as %s a block is lifted alone, by the command too, and with its count the next request is admitted',
  async (form) => {
    await exceed(form, '192.0.2.77')
    await exceed(form, '192.0.2.78')
    const before = form === 'full' ? 'ip=192.0.2.77' : `subject=${form}&limit=otp`
    const text = `weir:1:{${form}}:otp:key=${form}-1:ip=192%2E0%2E2%2E77`
    const client = await openLimiterRedis(redis.address)
    const endOf = async () => (await client.getBuffer(`${text}:blocked`))?.readDoubleBE(1) ?? 0
    const endMs = new Date(await endOf()).toISOString()
    const found = async () => (await list(before)).find(({ until }) => until === endMs)
    const item = (await waitUntil(found, { deadlineMs: 30_000, everyMs: 100 })) ?? expect.fail('not listed')
    const kept = await desk.ask<object>(`POST /v1/blocks/${item.id}/lift`)
    expect([kept.status, kept.body]).toEqual([
      200,
      { limit: 'otp', subject: form, lifted: true, forgotten: false, used_up: true },
    ])
    expect((await list(before)).map(({ id }) => id)).not.toContain(item.id)
    // What was counted is there still, and a refusal by it blocks again.
    expect(await ask(form, '192.0.2.77')).toBe(429)
    expect(await endOf()).toBeGreaterThan(Date.parse(endMs))
    const command = await runWeir(['blocks', 'lift', item.id, '--forget', '--json'], desk.environment)
    expect([command.stderr, command.code]).toEqual(['', 0])
    expect(JSON.parse(command.stdout)).toEqual({
      limit: 'otp',
      subject: form,
      lifted: true,
      forgotten: true,
      used_up: false,
    })
    const isAdmitted = async () => (await ask(form, '192.0.2.77')) === 200
    await until(isAdmitted, 1_500)
    expect(await ask(form, '192.0.2.78')).toBe(429)
    const again = await desk.ask<object>(`POST /v1/blocks/${item.id}/lift`, { forget: true })
    expect([again.status, again.body]).toMatchObject([200, { lifted: false, forgotten: true, used_up: false }])
    const { body } = await desk.ask<{ items: { summary: object[] }[] }>('GET /v1/changes?limit=3')
    const ofSubject = (what: string) => [
      { what, kind: 'subject', name: form },
      { what, kind: 'limit', name: 'otp' },
    ]
    expect(body.items.map(({ summary }) => summary)).toEqual(['reset', 'reset', 'unblock'].map(ofSubject))
    expect(JSON.stringify(body)).not.toContain('192.0.2')
  },
)

test('a block of an address that all subjects share is lifted, and an id of no block is a 404', async () => {
  const carl = () => ask('full', '192.0.2.200', { 'x-api-key': 'carl-key' })
  expect([await carl(), await carl(), await carl(), await carl(), await carl()]).toEqual([200, 200, 200, 429, 429])
  const [item] = await listed('limit=flood', 1)
  expect(item).toMatchObject({ subject: null, ip: '192.0.2.200', scope: { ip: '192.0.2.200' } })
  const { status, body } = await desk.ask<object>(`POST /v1/blocks/${item?.id}/lift`, { forget: true })
  expect([status, body]).toMatchObject([200, { limit: 'flood', subject: null, lifted: true, forgotten: true }])
  await until(async () => (await carl()) === 200, 1_500)
  const forged = Buffer.alloc(60).toString('base64url')
  for (const id of ['x', forged, `${item?.id.slice(0, -2)}`]) {
    const unknown = await desk.ask<{ type: string }>(`POST /v1/blocks/${id}/lift`)
    expect([unknown.status, unknown.body.type]).toEqual([404, 'urn:weir:problem:unknown-name'])
  }
})

test('weir blocks prints a table, and JSON for programs', async () => {
  await exceed('full', '192.0.2.150')
  await listed('ip=192.0.2.150', 1)
  const table = await runWeir(['blocks', '--ip', '192.0.2.150'], desk.environment)
  expect([table.code, table.stderr]).toEqual([0, ''])
  expect(table.stdout).toMatch(
    /^UNTIL +LIMIT +SUBJECT +COUNTED BY +SINCE +REFUSED +ID\n.+ UTC +otp +full +key=full-1 ip=192.0.2.150 +.+ UTC +2 /,
  )
  const json = await runWeir(['blocks', '--ip', '192.0.2.150', '--json'], desk.environment)
  expect(JSON.parse(json.stdout)).toMatchObject([{ ip: '192.0.2.150', refusals: 2 }])
  const none = await runWeir(['blocks', '--ip', '192.0.2.151'], desk.environment)
  expect([none.code, none.stdout, none.stderr.includes('No caller is blocked.')]).toEqual([0, '', true])
})

test('the limits of a subject say how much is used, how long a block lasts, and that a request would be refused', async () => {
  await exceed('full', '198.51.100.99')
  const path = '/v1/subjects/full/limits?ip=198.51.100.99&key_id=full-1&route=GET%20/codes'
  const { body } = await desk.ask<{ limits: { name: string; blocked_ms: number; reset_ms: number }[] }>(`GET ${path}`)
  const [otp, team] = ['otp', 'team'].map((name) => body.limits.find((limit) => limit.name === name))
  expect(body).toMatchObject({ allowed: false, denied_by: 'otp' })
  expect(otp).toMatchObject({ used: 1, remaining: 0, admits: false })
  // The header that it counts by was not named.
  expect(team).toMatchObject({ used: null, admits: null, blocked_ms: null })
  expect(otp?.blocked_ms).toBeGreaterThan(500_000)
  expect(otp?.blocked_ms).toBeLessThanOrEqual(600_000)
  expect(otp?.reset_ms).toBeGreaterThan(0)
})
