import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AlertingStack, openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'

const size = 1_000
let stack: AlertingStack
let sender: ReturnType<typeof createRecordSender>
beforeAll(async () => {
  stack = await openAlertingStack(['ops'], {
    limits: {
      burst: {
        ...{ algorithm: 'fixed_window', size, window: '1h', thresholds: ['90%', 100], cooldown: '10s', block: '1m' },
      },
      day: { algorithm: 'fixed_window', size, period: 'day', thresholds: ['60%'], forecast: true },
    },
    plans: { free: { limits: ['burst', 'day'] } },
  })
  sender = createRecordSender(kafkaOptions(stack.kafka.address))
  await stack.start()
}, 120_000)
afterAll(async () => {
  await sender?.close()
  await stack?.close()
})

/** Appends a decision of a subject that has used so much of its burst. */
async function decide(subject: string, used: number, more: Partial<DecisionInput> = {}) {
  const tsMs = Date.now()
  const open = encodeDecisionOpen({
    ...{ id: uuidv7(tsMs), tsMs, subject, keyId: '', plan: 'free', route: '*', method: 'GET', cost: 1, count: 1 },
    ...{ outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', deniedBy: '' },
    limits: [{ name: 'burst', size, used, remaining: Math.max(0, size - used), resetMs: 60_000 }],
    ...more,
  })
  const value = `${open},"journal":"01a1fdfa-6d10-4540-81b4-576e9d55a36f","seq":0}`
  await sender.send(topics.decisions, [{ key: subject, value }])
}

const denied = { outcome: 'deny', charged: 'no', deniedBy: 'burst' } as const

const received = (subject: string) =>
  stack.received.map(({ body }) => JSON.parse(body)).filter(({ data }) => data.subject === subject)
const until = async (condition: () => boolean) => expect(await waitUntil(condition, { deadlineMs: 30_000 })).toBe(true)
/** What stands before it in the same partition has been read once its alert, the only one of this size, has arrived. */
async function passed(subject: string) {
  const marked = size + 1
  await decide(subject, marked, {
    limits: [{ name: 'burst', size: marked, used: marked, remaining: 0, resetMs: 1 }],
  })
  await until(() => received(subject).some(({ data }) => data.size === marked))
}

test('thresholds in units and in percent of a window, each again only after its cooldown', async () => {
  await decide('acme', 99)
  await decide('acme', 100)
  await decide('acme', 150)
  await until(() => received('acme').length === 1)
  await decide('acme', 900)
  await until(() => received('acme').length === 2)
  expect(received('acme').map(({ data }) => [data.limit, data.percent, data.used])).toEqual([
    ['burst', 10, 100],
    ['burst', 90, 900],
  ])
  // The cooldown, the shortest there is, is over at some time; what is found then is an alert of its own.
  const again = async () => {
    await decide('acme', 120)
    return received('acme').length === 3
  }
  expect(await waitUntil(again, { deadlineMs: 30_000, everyMs: 250 })).toBe(true)
  const ids = stack.received.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids).size).toBe(3)
})

test('three addresses that are blocked under one key are three alerts, each with its address', async () => {
  const addresses = ['192.0.2.1', '192.0.2.2', '2001:db8::/64']
  const state = { name: 'burst', size, used: size, remaining: 0, resetMs: 60_000 }
  for (const reason of ['limit', 'blocked'] as const) {
    for (const ip of addresses)
      await decide('shared', size, { ...denied, reason, ip, limits: [{ ...state, by: { ip } }] })
  }
  const blocks = () => received('shared').filter(({ type }) => type === 'weir.limit.blocked')
  await until(() => blocks().length >= addresses.length)
  await passed('shared')
  expect(
    blocks()
      .map(({ data }) => data.by)
      .toSorted((a, b) => (a.ip < b.ip ? -1 : 1)),
  ).toEqual(addresses.map((ip) => ({ ip })))
})

test('a subject that exceeds a limit with a block raises one alert that says until when, and refusals within it none', async () => {
  const fromMs = Date.now()
  await decide('rude', size, { ...denied, reason: 'limit' })
  const isBlocked = () => received('rude').some(({ type }) => type === 'weir.limit.blocked')
  await until(isBlocked)
  await decide('rude', size, { ...denied, reason: 'blocked' })
  await decide('rude', size, { ...denied, reason: 'blocked' })
  await passed('rude')
  const blocks = received('rude').filter(({ type }) => type === 'weir.limit.blocked')
  expect(blocks).toHaveLength(1)
  expect(blocks[0]?.data).toMatchObject({ limit: 'burst', size })
  const untilMs = Date.parse(blocks[0]?.data.until)
  expect(untilMs).toBeGreaterThanOrEqual(fromMs + 60_000)
  expect(untilMs).toBeLessThan(Date.now() + 60_000)
})

test('a quota that ends before its day is forecast once, from the decision that it was found by on', async () => {
  const dayMs = 86_400_000
  const midnightMs = Math.floor(Date.now() / dayMs) * dayMs
  const at = (share: number, used: number) => {
    const tsMs = midnightMs + dayMs * share
    const limits = [{ name: 'day', size, used, remaining: size - used, resetMs: dayMs * (1 - share) }]
    return decide('early', used, { tsMs, id: uuidv7(tsMs), limits })
  }
  await at(0.25, 200)
  await at(0.25, 500)
  await at(0.3, 550)
  await at(0.5, 600)
  await until(() => received('early').length === 2)
  const instant = (share: number) => new Date(midnightMs + dayMs * share).toISOString()
  const [early, reached] = received('early').sort((a, b) => a.data.used - b.data.used)
  expect([early.type, reached.type]).toEqual(['weir.quota.forecast', 'weir.quota.reached'])
  expect(early.data).toMatchObject({ limit: 'day', size, used: 500, runs_out: instant(0.5) })
  expect(early.data).toMatchObject({ period_start: instant(0), period_end: instant(1) })
})
