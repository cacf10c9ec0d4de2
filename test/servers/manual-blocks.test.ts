import type { Block } from '@weir/api/limits.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { createRlsClient } from '../support/envoy-ratelimit/rls-client.ts'
import { startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { send } from '../support/gateways/send.ts'
import { forFile } from '../support/opened.ts'
import { startServer } from '../support/servers/start-server.ts'
import { type RunningIngress, startIngress } from '../support/start-ingress.ts'
import { openLimiterRedis } from '../support/test-redis.ts'
import { until } from '../support/until.ts'

const upstream = await forFile(startPlainUpstream())
const policy = {
  version: 1,
  identity: { trustedProxies: ['127.0.0.1/32'] },
  plans: { free: { limits: ['per-ip'] } },
  limits: { 'per-ip': { algorithm: 'fixed_window', size: 2, window: '7d', by: ['ip'] } },
  upstreams: { api: { url: upstream.url, hosts: ['*'] } },
  subjects: {
    acme: {
      plan: 'free',
      keys: [
        { sha256: sha256('acme'), id: 'a-1' },
        { sha256: sha256('second'), id: 'a-2' },
      ],
    },
    bolt: { plan: 'free', keys: [{ sha256: sha256('bolt'), id: 'b-1' }] },
  },
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
}

const redis = await forFile(startServer(redisServer))
const stack = await forFile(startConsoleStack({ policy, environment: { WEIR_REDIS_URL: redis.address } }))
const { desk } = stack
const servers = {
  WEIR_KAFKA_BROKERS: stack.kafka.address,
  WEIR_REDIS_URL: redis.address,
  WEIR_POLICY_FILE: '/nowhere/weir.yaml',
  WEIR_ADMIN_TOKEN_SHA256: sha256('root'),
}
const processes: RunningIngress[] = [await startIngress(servers), await startIngress(servers)]
afterAll(async () => {
  for (const one of processes) await one.close()
})

interface Caller {
  readonly key?: string
  readonly subject?: string
  readonly ip?: string
}

const free = '203.0.113.1'
let addresses = 0
/** Of nobody yet: no limit by address is used up. */
function fresh(): string {
  addresses += 1
  return `198.18.${addresses >> 8}.${addresses & 255}`
}

/** Whether each entry point of a process admits the caller, by its problem type where it does not. */
async function doors(
  ingress: RunningIngress,
  { key = 'acme', subject = 'acme', ip = free }: Caller,
): Promise<string[]> {
  const from = { 'x-api-key': key, 'x-forwarded-for': ip }
  const typeOf = (text: string) => String(JSON.parse(text).type).replace('urn:weir:problem:', '')
  const read = (answer: { status: number; body: string }) =>
    answer.status === 200 ? 'ok' : `${answer.status} ${typeOf(answer.body)}`
  const body = Buffer.from(JSON.stringify({ key, ip, cost: 0 }))
  const headers = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const rls = await createRlsClient(ingress.grpc)
  try {
    const [proxied, authorized, checked, called] = await Promise.all([
      send(ingress.proxy, { path: '/v1/x', headers: from, from: '127.0.0.1' }),
      send(ingress.api, { path: '/v1/authorize/v1/x', headers: from, from: '127.0.0.1' }),
      send(ingress.api, { method: 'POST', path: '/v1/check', headers, body }),
      rls.shouldRateLimit({
        domain: 'mesh',
        descriptors: [
          {
            entries: [
              { key: 'subject', value: subject },
              { key: 'remote_address', value: ip },
            ],
          },
        ],
        hits_addend: 0,
      }),
    ])
    const check = JSON.parse(checked.body)
    const result = check.allowed ? 'ok' : `${check.reason} ${check.denied_by}${check.suspended ?? ''}`
    return [read(proxied), read(authorized), result, String(called.overall_code)]
  } finally {
    await rls.close()
  }
}
const ofAll = (caller: Caller) => Promise.all(processes.map((one) => doors(one, caller)))
/** Waits until every entry point of every process answers so; resolves to the milliseconds that it took. */
async function untilAll(caller: Caller, wanted: readonly string[]): Promise<number> {
  const fromMs = performance.now()
  await until(async () => (await ofAll(caller)).every((some) => `${some}` === `${wanted}`), 10_000)
  return performance.now() - fromMs
}
const blocked = ['403 blocked', '403 blocked', 'blocked ', 'OVER_LIMIT']

const block = async (body: object) => {
  const { status, body: made } = await desk.ask<Block>('POST /v1/blocks', body)
  expect([status, made.by]).toEqual([201, 'root'])
  return made.id
}
const lift = async (id: string) => (await desk.ask<{ lifted: boolean }>(`POST /v1/blocks/${id}/lift`, {})).body.lifted

test.each<[string, object, Caller, Caller]>([
  ['an address', { ip: '192.0.2.7' }, { ip: '192.0.2.7' }, { ip: '192.0.2.8' }],
  ['a network', { ip: '198.51.100.0/24' }, { ip: '198.51.100.200' }, { ip: '198.51.101.1' }],
  ['a subject', { subject: 'bolt' }, { key: 'bolt', subject: 'bolt' }, { key: 'acme' }],
])(
  '%s is blocked at every entry point of two processes within a second, and free once it is lifted',
  async (_, of, caller, other) => {
    const id = await block({ ...of, for: '1h', reason: 'test' })
    const tookMs = await untilAll(caller, blocked)
    process.stdout.write(`blocked everywhere after ${Math.round(tookMs)} ms\n`)
    expect((await ofAll({ ...other, ip: other.ip ?? fresh() })).flat()).not.toContain('403 blocked')
    expect([await lift(id), await lift(id)]).toEqual([true, false])
    await until(async () => !(await ofAll(caller)).flat().includes('403 blocked'), 10_000)
  },
)

test('a block outlives Redis, every process and an applied file, has a record and is in the list for firewalls', async () => {
  const id = await block({ ip: '192.0.2.66', for: '1h' })
  await untilAll({ ip: '192.0.2.66' }, blocked)
  const admin = await openLimiterRedis(redis.address)
  await admin.flushall()
  await processes.pop()?.close()
  processes.push(await startIngress(servers))
  expect(await ofAll({ ip: '192.0.2.66' })).toEqual([blocked, blocked])
  expect((await desk.ask('PUT /v1/policy', JSON.stringify(policy))).status).toBe(200)
  const { body } = await desk.ask<{ items: Block[] }>('GET /v1/blocks?ip=192.0.2.66')
  expect(body.items).toMatchObject([{ id, ip: '192.0.2.66', limit: null, exempt: false, by: 'root' }])
  const exempt = await block({ ip: '192.0.2.66', exempt: true, for: '1h' })
  await until(async () => !(await ofAll({ ip: '192.0.2.66' })).flat().includes('403 blocked'), 10_000)
  const { WEIR_CONSOLE_URL: url, WEIR_ADMIN_TOKEN: token } = desk.environment
  const asked = { headers: { authorization: `Bearer ${token}` } }
  const text = async () => await (await fetch(`${url}/v1/blocks?format=text`, asked)).text()
  expect(await text()).not.toContain('192.0.2.66')
  await lift(exempt)
  await untilAll({ ip: '192.0.2.66' }, blocked)
  expect(await text()).toContain('192.0.2.66\n')
  await lift(id)
})

test('no limit by address applies to an exempt one', async () => {
  const ip = fresh()
  const id = await block({ ip, exempt: true, for: '1h' })
  await until(async () => (await ofAll({ ip })).flat().every((one) => one.toLowerCase() === 'ok'), 10_000)
  for (let times = 0; times < 3; times += 1) expect((await ofAll({ ip })).flat()).not.toContain('429')
  await lift(id)
})

test('a suspended subject is refused with its reason everywhere, and served again once it is resumed', async () => {
  const reason = 'Invoice 17 is unpaid'
  const settings = (await desk.ask<object>('GET /v1/subjects/bolt')).body
  expect((await desk.ask('PUT /v1/subjects/bolt', { ...settings, suspended: reason })).status).toBe(200)
  const caller = { key: 'bolt', subject: 'bolt', ip: fresh() }
  await untilAll(caller, ['403 suspended', '403 suspended', `blocked ${reason}`, 'OVER_LIMIT'])
  const { body, headers } = await send(processes[0]?.proxy ?? '', { path: '/', headers: { 'x-api-key': 'bolt' } })
  expect([JSON.parse(body).detail, headers['retry-after']]).toEqual([reason, undefined])
  expect((await desk.ask('PUT /v1/subjects/bolt', settings)).status).toBe(200)
  await until(async () => !(await ofAll({ ...caller, ip: fresh() })).flat().includes('403 suspended'), 10_000)
})
