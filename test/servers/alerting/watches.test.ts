import { formatTs } from '@weir/contracts/timestamp.ts'
import { topics } from '@weir/contracts/topics.ts'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const stack = await forFile(
  openAlertingStack(['ops'], {
    watches: {
      refusals: { alert: 'weir.denied_rate.high', factor: 3 },
      surges: { alert: 'weir.allowed.high', factor: 3 },
      addresses: { alert: 'weir.allowed.high', per: 'address', factor: 3 },
      traffic: { alert: 'weir.allowed.dropped', factor: 3 },
      everything: { alert: 'weir.denied_rate.high', per: 'all', factor: 2 },
    },
  }),
)

const minuteMs = 60_000
const second = (ms: number) => Math.floor(ms / 1_000)

/**
 * Requests of each minute of the last hour and a quarter, so many in one before the last windows, and in one of those.
 */
async function use(subject: string, outcome: 'allow' | 'deny', usual: number, lately: number) {
  const thisMinute = Math.floor(Date.now() / minuteMs) * minuteMs
  const values = Array.from({ length: 76 }, (_, ago) => ({
    ts: second(thisMinute - ago * minuteMs),
    subject,
    key_id: '',
    plan: 'free',
    route: '*',
    method: 'GET',
    outcome,
    denied_by: '',
    count: ago <= 6 ? lately : usual,
    cost: 0,
  }))
  await stack.tables.client.insert({ table: 'weir.usage_1m', values, format: 'JSONEachRow' })
}

/** Requests of each minute of the last hour, from one address, of subjects that each have few; an empty one is none. */
async function useFrom(ip: string, subjects: readonly string[]) {
  const values = subjects.flatMap((subject) =>
    Array.from({ length: 60 }, (_, ago) => ({
      ts: formatTs(Date.now() - ago * minuteMs),
      subject,
      plan: 'free',
      route: '*',
      method: 'GET',
      ip,
      outcome: 'allow',
      count: ago <= 6 ? 10 : 1,
    })),
  )
  await stack.tables.client.insert({ table: 'weir.decisions', values, format: 'JSONEachRow' })
}

/** Says that an ingress has been there for two hours, and that every decision until then is there. */
const mark = (at: number) =>
  stack.tables.client.insert({
    table: 'weir.marks',
    values: [
      {
        topic: topics.decisions,
        journal: '01a1fdfa-6d10-4540-81b4-576e9d55a36f',
        partition: 0,
        mark: formatTs(at),
        first_mark: formatTs(at - 2 * 3_600_000),
        seq: 1,
        end: false,
      },
    ],
    format: 'JSONEachRow',
  })

const raised = () =>
  stack.rows<{ type: string; subject: string }>('SELECT type, subject FROM weir.alerts FINAL ORDER BY ALL')

test('far more refusals, and far more or fewer accepted requests than usual, are alerts, once for all processes', async () => {
  await use('stormy', 'deny', 10, 200)
  await use('grumpy', 'deny', 100, 110)
  await use('few', 'deny', 0, 15)
  await use('gone', 'allow', 50, 0)
  await use('busy', 'allow', 10, 200)
  await useFrom('198.51.100.7', ['one', 'two', 'three', 'four'])
  await useFrom('198.51.100.8', ['nine'])
  await useFrom('', ['five', 'six', 'seven', 'eight'])
  await use('steady', 'allow', 50, 40)
  await use('seldom', 'allow', 5, 0)
  // Nothing is known yet of whether decisions are missing.
  const first = await stack.start()
  const isBehind = async () => (await first.ready()).text.includes('complete for no time')
  await until(isBehind, 10_000)
  expect(stack.received).toEqual([])
  await first.kill('SIGKILL')
  // Its turn to look would end by itself, in a minute.
  const redis = new Redis(stack.redis.address)
  await redis.del('weir:1:watches:turn')

  await mark(Date.now())
  await Promise.all([stack.start(), stack.start()])
  await until(() => stack.received.length >= 5, 30_000)
  await until(async () => (await raised()).length >= 5, 30_000)
  expect(await raised()).toEqual([
    { type: 'weir.allowed.dropped', subject: 'gone' },
    { type: 'weir.allowed.high', subject: 'busy' },
    { type: 'weir.allowed.high', subject: 'ip:198.51.100.7' },
    { type: 'weir.denied_rate.high', subject: '_all' },
    { type: 'weir.denied_rate.high', subject: 'stormy' },
  ])
  const data = stack.received.map(({ body }) => JSON.parse(body).data).sort((a, b) => (a.watch < b.watch ? -1 : 1))
  expect(data).toMatchObject([
    { watch: 'addresses', subject: 'ip:198.51.100.7', count: 200 },
    { watch: 'everything', subject: '_all', count: 5 * 325 },
    { watch: 'refusals', subject: 'stormy', count: 1_000 },
    { watch: 'surges', subject: 'busy', count: 1_000 },
    { watch: 'traffic', subject: 'gone', count: 0 },
  ])
  expect(new Set(stack.received.map(({ headers }) => headers['webhook-id'])).size).toBe(5)

  // A Redis that has lost everything knows of no claims, and ClickHouse tells what was raised.
  await redis.flushall()
  await mark(Date.now())
  await stack.start()
  await until(() => redis.exists('weir:1:watches:looked').then(Boolean), 90_000)
  const turn = await redis.hlen('weir:1:watches:looked')
  expect(turn).toBeGreaterThan(0)
  await stack.decide(['marker'], 800)
  await until(() => stack.received.some(({ body }) => body.includes('marker')), 30_000)
  expect(stack.received).toHaveLength(6)
  redis.disconnect()
}, 240_000)
