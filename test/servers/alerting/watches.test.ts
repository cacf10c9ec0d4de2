import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AlertingStack, openAlertingStack } from '../../support/alerting/open-alerting.ts'

let stack: AlertingStack
beforeAll(async () => {
  stack = await openAlertingStack(['ops'], {
    watches: {
      refusals: { alert: 'weir.denied_rate.high', factor: 3 },
      traffic: { alert: 'weir.allowed.dropped', factor: 3 },
      everything: { alert: 'weir.denied_rate.high', per: 'all', factor: 2 },
    },
  })
}, 120_000)
afterAll(() => stack?.close())

const minuteMs = 60_000
const second = (ms: number) => Math.floor(ms / 1_000)

/** Requests of each minute of the last hour and a quarter, so many in one before the last windows, and in one of those. */
async function use(subject: string, outcome: 'allow' | 'deny', usual: number, lately: number) {
  const thisMinute = Math.floor(Date.now() / minuteMs) * minuteMs
  const values = Array.from({ length: 76 }, (_, ago) => ({
    ...{ ts: second(thisMinute - ago * minuteMs), subject, key_id: '', plan: 'free', route: '*', method: 'GET' },
    ...{ outcome, denied_by: '', count: ago <= 6 ? lately : usual, cost: 0 },
  }))
  await stack.tables.client.insert({ table: 'weir.usage_1m', values, format: 'JSONEachRow' })
}

/** Says that every decision until now is there. */
const mark = (at: number) =>
  stack.tables.client.insert({
    table: 'weir.marks',
    values: [
      {
        ...{ topic: topics.decisions, journal: '01a1fdfa-6d10-4540-81b4-576e9d55a36f', partition: 0 },
        ...{ mark: at / 1_000, seq: 1, end: false },
      },
    ],
    format: 'JSONEachRow',
  })

const raised = () => stack.rows<{ type: string; subject: string }>('SELECT type, subject FROM weir.alerts ORDER BY ALL')

test('far more refusals and far fewer accepted requests than usual are alerts, once for all processes', async () => {
  await use('stormy', 'deny', 10, 200)
  await use('grumpy', 'deny', 100, 110)
  await use('few', 'deny', 0, 15)
  await use('gone', 'allow', 50, 0)
  await use('steady', 'allow', 50, 40)
  await use('seldom', 'allow', 5, 0)
  // Nothing is known yet of whether decisions are missing.
  const first = await stack.start()
  const isBehind = async () => (await first.ready()).text.includes('complete for no time only')
  expect(await waitUntil(isBehind, { deadlineMs: 10_000 })).toBe(true)
  expect(stack.received).toEqual([])
  await first.kill('SIGKILL')

  await mark(Date.now())
  await Promise.all([stack.start(), stack.start()])
  expect(await waitUntil(() => stack.received.length >= 3, { deadlineMs: 30_000 })).toBe(true)
  expect(await waitUntil(async () => (await raised()).length >= 3, { deadlineMs: 30_000 })).toBe(true)
  expect(await raised()).toEqual([
    { type: 'weir.allowed.dropped', subject: 'gone' },
    { type: 'weir.denied_rate.high', subject: '_all' },
    { type: 'weir.denied_rate.high', subject: 'stormy' },
  ])
  const data = stack.received.map(({ body }) => JSON.parse(body).data).sort((a, b) => (a.watch < b.watch ? -1 : 1))
  expect(data).toMatchObject([
    { watch: 'everything', subject: '_all', count: 5 * 325 },
    { watch: 'refusals', subject: 'stormy', count: 1_000 },
    { watch: 'traffic', subject: 'gone', count: 0 },
  ])
  expect(new Set(stack.received.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
}, 120_000)
