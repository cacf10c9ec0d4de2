import { randomUUID } from 'node:crypto'
import { noCounts } from '@weir/alerting/metrics.ts'
import { createClaimStore } from '@weir/alerting/raise/claim-store.ts'
import { AlertRaiser } from '@weir/alerting/raise/raise-alerts.ts'
import { alertRow, createAlertHistory } from '@weir/alerting/record/alert-table.ts'
import { createResolvedRound } from '@weir/alerting/watch/watch-resolved.ts'
import type { AlertOf, AlertV1 } from '@weir/contracts/alert.v1.ts'
import { createBoundaryCache, periodBoundaries } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { findAskedLimits } from '@weir/redis/asked-limits.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { afterAll, expect, inject, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { startTables } from '../../support/servers/tables.ts'

const tables = await forFile(startTables())
const redis = connectRedis(inject('redisUrl'), { role: 'claims', onError: () => undefined })
await new Promise((ready) => redis.once('ready', ready))
const store = new RedisLimitStore({
  redis,
  clock: systemClock,
  periodBoundaries: createBoundaryCache(),
  deadlineMs: 5_000,
})
afterAll(() => {
  store.close()
  redis.disconnect()
})

const minuteMs = 60_000
const dayMs = 1_440 * minuteMs
const [monthStartMs, monthEndMs] = periodBoundaries('month', 'UTC', 1, Date.now())
const log = createLogger('test', 'silent')

/** The policy of a subject below a company: a month of `size`, a window, and a count for each route. */
const policyOf = (subject: string, size: number, more: object = {}) =>
  requirePolicy(
    JSON.stringify({
      version: 1,
      plans: { free: { limits: ['month', 'window', 'routes'] }, none: { limits: [] } },
      limits: {
        month: { algorithm: 'fixed_window', size: 1_000, period: 'month', thresholds: ['50%', 800, '100%'] },
        window: { algorithm: 'sliding_window', size, window: '1m', cooldown: '2h', thresholds: ['80%'] },
        routes: { algorithm: 'fixed_window', size, period: 'month', by: ['subject', 'route'], thresholds: ['80%'] },
      },
      subjects: {
        [`company of ${subject}`]: { plan: 'none' },
        [subject]: { plan: 'free', parent: `company of ${subject}`, limits: { month: { size } }, ...more },
      },
    }),
    'weir.yaml',
  )

/** Writes alerts to ClickHouse, as alerting does with what is in the topic. */
const insert = (alerts: readonly AlertV1[]) =>
  tables.client.insert({
    table: 'weir.alerts',
    values: alerts.map((alert) => alertRow(alert, 'raised')),
    format: 'JSONEachRow',
  })

/** The data of an alert about the month that runs. */
const dataOf = (percent: number) => ({
  limit: 'month',
  size: 1_000,
  used: percent * 10,
  percent,
  period_start: new Date(monthStartMs).toISOString(),
  period_end: new Date(monthEndMs).toISOString(),
  decision_id: randomUUID(),
})

/** ClickHouse and Redis, of which one refuses what a round asks while `state` says so. */
function serversOf(state: { readonly isAway: boolean; readonly areCountsAway: boolean }) {
  const query: typeof tables.client.query = (asked) =>
    state.isAway ? Promise.reject(new Error('away')) : tables.client.query(asked)
  const getrange: typeof redis.getrange = (...asked: Parameters<typeof redis.getrange>) =>
    state.areCountsAway ? Promise.reject(new Error('no right to getrange')) : redis.getrange(...asked)
  return {
    clickhouse: Object.assign(Object.create(tables.client), { query }),
    redis: Object.assign(Object.create(redis), { getrange }),
  }
}

/** One subject with its alerts, and processes that resolve them; ClickHouse gets what is published while `isLogged`. */
function open() {
  const subject = randomUUID()
  const clock = { ms: Date.now(), nowMs: () => clock.ms }
  const state = {
    policy: policyOf(subject, 1_000),
    crashAt: '',
    isLogged: true,
    isAway: false,
    areCountsAway: false,
    found: 0,
  }
  const published: AlertOf<'weir.quota.resolved'>[] = []
  const process = () => {
    const raiser = new AlertRaiser({
      claims: createClaimStore(redis),
      clock,
      counters: noCounts(),
      history: createAlertHistory(tables.client, log),
      async publish(alerts) {
        // Other tests have alerts of other subjects.
        published.push(
          ...alerts.flatMap((one) => (one.type === 'weir.quota.resolved' && one.subject === subject ? [one] : [])),
        )
        if (state.isLogged) await insert(alerts)
      },
      crash: (step) => {
        if (step === state.crashAt) throw new Error(`killed at ${step}`)
      },
    })
    return createResolvedRound({
      ...serversOf(state),
      policyInForce: () => state.policy,
      // A round finds the alerts of every test, and these processes are of this subject alone.
      raise(found) {
        const own = found.filter((one) => one.subject === subject)
        state.found += own.length
        return raiser.raise(own)
      },
      clock,
      stopping: new AbortController().signal,
      log,
    })
  }
  return {
    subject,
    clock,
    state,
    published,
    process,
    /** Uses units of a limit, as decisions do. */
    async use(cost: number, limitName = 'month', route = '/a') {
      const found = findAskedLimits(state.policy, { subject, limit: limitName })
      if (found.kind !== 'found') throw new Error(found.message)
      const limits = found.asked.limits.map(({ limit }) => limit)
      const { above } = found.asked.scope
      const request = buildLimitRequest({ scope: buildScope({ subject, route, above }), limits, cost })
      const decision = await store.decide(request)
      expect(decision).toMatchObject({ allowed: true, charged: 'yes' })
      return { back: () => store.refund(request, decision) }
    },
    /** An alert that ClickHouse knows. */
    async reached(percent: number, data: Partial<AlertOf<'weir.quota.reached'>['data']> = {}) {
      const alert: AlertV1 = {
        id: randomUUID(),
        type: 'weir.quota.reached',
        subject,
        time: new Date(clock.ms).toISOString(),
        data: { ...dataOf(percent), ...data },
      }
      await insert([alert])
      return alert
    },
    told: () => published.map(({ data }) => [data.resolves, data.reason, data.used, data.size]),
  }
}

test('A threshold alert is resolved once when its period is over, whichever process asks how often', async () => {
  const { clock, process, published, reached, told, use } = open()
  await use(1_000)
  const [half, full] = [await reached(50), await reached(100)]
  const [one, other] = [process(), process()]
  await one.round()
  clock.ms = monthEndMs - 1
  await one.round()
  expect(told()).toEqual([])
  clock.ms = monthEndMs
  await one.round()
  await other.round()
  await process().round()
  expect(told().sort()).toEqual(
    [
      [half.id, 'period_ended', 500, 1_000],
      [full.id, 'period_ended', 1_000, 1_000],
    ].sort(),
  )
  expect(published[0]).toMatchObject({
    data: { limit: 'month', reached_at: half.time, decision_id: expect.anything() },
  })
})

test('An alert whose period ended while ClickHouse was away is resolved days later, and one that no process reads for a week is not', async () => {
  const { clock, state, process, reached, told } = open()
  const alert = await reached(80, { period_start: new Date(monthEndMs - dayMs).toISOString() })
  const watch = process()
  clock.ms = monthEndMs + 1
  state.isAway = true
  await expect(watch.round()).rejects.toThrow('away')
  state.isAway = false
  clock.ms = monthEndMs + 7 * dayMs
  await watch.round()
  expect(told()).toEqual([])
  clock.ms = monthEndMs + 6 * dayMs
  await watch.round()
  expect(told()).toEqual([[alert.id, 'period_ended', 800, 1_000]])
})

test('While counts cannot be read, ends of periods are resolved, the round fails, and a later one finds the rest', async () => {
  const { subject, clock, state, process, reached, told, use } = open()
  await use(900)
  const ended = await reached(80, { period_end: new Date(clock.ms - 1_000).toISOString() })
  const running = await reached(90)
  state.policy = policyOf(subject, 2_000)
  state.areCountsAway = true
  const watch = process()
  await expect(watch.round()).rejects.toThrow('getrange')
  expect(told()).toEqual([[ended.id, 'period_ended', 800, 1_000]])
  state.areCountsAway = false
  await watch.round()
  expect(told().slice(1)).toEqual([[running.id, 'size_changed', 900, 2_000]])
})

test('Another size resolves the alerts whose threshold is above what is used, percent and units each in their way', async () => {
  const { subject, state, process, reached, told, use } = open()
  await use(900)
  const [half, units, gone] = [await reached(50), await reached(80), await reached(90)]
  const watch = process()
  await watch.round()
  expect(told()).toEqual([])
  // 80 % of 1,000 is the threshold of 800 units, whatever the size; 90 % is in no policy any more.
  state.policy = policyOf(subject, 1_700)
  await watch.round()
  expect(told()).toEqual([[gone.id, 'size_changed', 900, 1_700]])
  state.policy = policyOf(subject, 1_800)
  await watch.round()
  expect(told().length).toBe(1)
  state.policy = policyOf(subject, 1_802)
  await watch.round()
  expect(told().slice(1)).toEqual([[half.id, 'size_changed', 900, 1_802]])
  expect(units.data.percent).toBe(80)
})

test('An alert is over when its limit applies to the subject no longer', async () => {
  const { subject, state, process, reached, told, use } = open()
  await use(900)
  const alert = await reached(80)
  state.policy = policyOf(subject, 1_000, { plan: 'none', limits: {} })
  await process().round()
  expect(told()).toEqual([[alert.id, 'size_changed', 800, 1_000]])
})

test('Less use resolves an alert when it stays well below the threshold for a minute', async () => {
  const { clock, process, reached, told, use } = open()
  const first = await use(300)
  await use(419)
  const second = await use(100)
  const alert = await reached(80)
  const watch = process()
  const nextRound = async () => {
    await watch.round()
    clock.ms += minuteMs
  }
  await second.back()
  const third = await use(1)
  await nextRound() // 720 are not less than nine tenths of 800
  await nextRound()
  await third.back()
  await nextRound()
  const again = await use(100)
  await nextRound() // it came back before a minute was over
  await again.back()
  await nextRound()
  expect(told()).toEqual([])
  await first.back()
  await nextRound()
  await nextRound()
  expect(told()).toEqual([[alert.id, 'used_less', 419, 1_000]])
})

test('A reset resolves at once; a count that Redis lost resolves nothing', async () => {
  const { subject, clock, process, reached, told, use } = open()
  await use(900)
  const alert = await reached(80)
  const watch = process()
  await redis.del(`weir:1:{company%20of%20${subject}}:month:of=${subject}`)
  for (let rounds = 0; rounds < 3; rounds += 1) {
    await watch.round()
    clock.ms += minuteMs
  }
  expect(told()).toEqual([])
  watch.reset([subject])
  await watch.round()
  expect(told()).toEqual([[alert.id, 'used_less', 0, 1_000]])
})

test('An alert of a limit with a window is over when it may be raised again, or its size has changed', async () => {
  const { subject, clock, state, process, reached, told, use } = open()
  const window = { limit: 'window', period_start: new Date().toISOString(), period_end: new Date().toISOString() }
  const alert = await reached(80, window)
  const watch = process()
  clock.ms += 118 * minuteMs
  await watch.round()
  clock.ms += minuteMs
  await watch.round()
  expect(told()).toEqual([])
  const later = await reached(80, window)
  clock.ms += minuteMs
  await watch.round()
  expect(told()).toEqual([[alert.id, 'period_ended', 800, 1_000]])
  await use(900, 'window')
  state.policy = policyOf(subject, 1_100)
  await watch.round()
  expect(told().length).toBe(1)
  state.policy = policyOf(subject, 2_000)
  await watch.round()
  expect(told()[1]?.slice(0, 2)).toEqual([later.id, 'size_changed'])
})

test('The count that an alert names is looked at where a limit has several; one that the record hides is not found', async () => {
  const { subject, state, process, reached, told, use } = open()
  await use(900, 'routes')
  await use(950, 'routes', '/b')
  const [quiet, busy] = [
    await reached(80, { limit: 'routes', by: { route: '/a' } }),
    await reached(80, { limit: 'routes', by: { route: '/b' } }),
  ]
  await reached(80, { limit: 'routes', by: { route: 'sha256:0123456789012345678901' } })
  state.policy = policyOf(subject, 1_100)
  await process().round()
  expect(told()).toEqual([])
  state.policy = policyOf(subject, 1_126)
  await process().round()
  expect(told()).toEqual([[quiet.id, 'size_changed', 900, 1_126]])
  state.policy = policyOf(subject, 1_188)
  await process().round()
  expect(told().slice(1)).toEqual([[busy.id, 'size_changed', 950, 1_188]])
})

test.each(['claim', 'supersede', 'publish', 'done'])(
  'A process that dies at %s leaves the alert to the next one, under the same id',
  async (step) => {
    const { clock, state, process, published, reached, told } = open()
    const alert = await reached(80)
    clock.ms = monthEndMs
    // What was published is not in ClickHouse yet.
    state.isLogged = false
    state.crashAt = step
    await expect(process().round()).rejects.toThrow('killed')
    state.crashAt = ''
    const next = process()
    await next.round()
    await next.round()
    await process().round()
    expect(new Set(published.map(({ id }) => id)).size).toBe(1)
    expect(told()[0]?.[0]).toBe(alert.id)
    // Only between publishing and the end of the claim it is not known that it was published.
    expect(published.length).toBe(step === 'publish' ? 2 : 1)
  },
)

test('An alert that Redis forgot to be resolved is not resolved again, as ClickHouse knows it', async () => {
  const { subject, clock, state, process, reached, told } = open()
  const alert = await reached(80)
  clock.ms = monthEndMs
  await process().round()
  await redis.del(`quota_alert:{${subject}}:resolved:${alert.id}`)
  await process().round()
  expect([told().length, state.found]).toEqual([1, 1])
})

test('Thousands of alerts that end together are resolved in one round, each once', { timeout: 120_000 }, async () => {
  const { subject, clock, process, published, reached } = open()
  const first = await reached(80)
  await insert(Array.from({ length: 2_500 }, () => ({ ...first, id: randomUUID() })))
  clock.ms = monthEndMs
  const startedMs = performance.now()
  await process().round()
  const tookMs = Math.round(performance.now() - startedMs)
  globalThis.process.stdout.write(`  2,501 alerts of ${subject} resolved in ${tookMs} ms\n`)
  expect(new Set(published.map(({ data }) => data.resolves)).size).toBe(2_501)
  expect(published).toHaveLength(2_501)
})
