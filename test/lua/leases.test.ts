import { expect, test } from 'vitest'
import { leasingIngress, startMs } from '../support/leasing-ingress.ts'

test('Units are charged on every limit and recorded as so many decisions, before they are given', async () => {
  const { lease, log, used, subject } = await leasingIngress()
  const given = await lease('free', 84)
  expect(given).toMatchObject({
    count: 84,
    cost: 1,
    ends_ms: 2_000,
    life_ms: 2_000,
    limits: [
      { name: 'minute', size: 1000, used: 84, remaining: 916, reset_ms: 59_000 },
      { name: 'hour', used: 84, remaining: 3_916 },
    ],
    headers: {
      'weir-decision': given.id,
      'ratelimit-policy': '"minute";q=1000;w=60, "hour";q=4000;w=3600',
      ratelimit: '"minute";r={r0};t={t0}, "hour";r={r1};t={t1}',
    },
  })
  expect(log.records).toMatchObject([
    { id: given.id, subject: `${subject}-free`, cost: 1, count: 84, outcome: 'allow', charged: 'yes', reason: 'ok' },
  ])
  expect(await used('free')).toEqual([84, 84])
})

test('What was not used comes back once, as units and as decisions, on every limit and by one record', async () => {
  const { lease, post, of, log, used } = await leasingIngress()
  const { id } = await lease('free', 50, { route: 'GET /dear' })
  expect(await used('free')).toEqual([125, 125])
  for (let n = 0; n < 2; n += 1) {
    const { body } = await post('/v1/leases', { settle: [{ ...of('free'), id, cost: 15 }] })
    expect(body.settled).toEqual([{ id, adjustment: -110 }])
  }
  expect(await used('free')).toEqual([15, 15])
  expect(log.records).toMatchObject([
    { id, count: 25, cost: 5 },
    { corrects: id, count: 0, adjustment: -110, count_adjustment: -22 },
  ])
  const other = await post('/v1/leases', { settle: [{ ...of('free'), id, cost: 20 }] })
  expect(other.body.settled).toMatchObject([{ problem: { status: 409 } }])
})

test('At most an eighth of what is left is given, and nothing where that is less than eight decisions', async () => {
  const { lease, post, of, used } = await leasingIngress()
  expect((await lease('free', 10_000)).count).toBe(125)
  await post('/v1/check', { ...of('free'), cost: 875 - 64 })
  expect((await lease('free', 500)).count).toBe(8)
  expect(await lease('free', 500)).toEqual({ count: 0, why: 'too-little' })
  expect(await used('free')).toEqual([944, 944])
  const refused = await lease('free', 8, { cost: 100 })
  expect(refused).toMatchObject({ count: 0, why: 'refused', result: { allowed: false, denied_by: 'minute' } })
})

test('A lease ends with the window or the cell in which it is charged, and earlier where the route says so', async () => {
  const { lease, clock } = await leasingIngress()
  expect((await lease('free', 8, { route: 'GET /short' })).ends_ms).toBe(500)
  clock.ms = startMs + 59_000
  expect((await lease('free', 8)).ends_ms).toBe(1_000)
  clock.ms = startMs + 59_960
  expect(await lease('free', 8)).toEqual({ count: 0, why: 'too-little', retry_ms: 40 })
  // The cell of the sliding window ends with the hour; that of the minute then too.
  clock.ms = startMs + 3_600_000 - 700
  expect((await lease('free', 8)).ends_ms).toBe(700)
})

test('What is not leased is named, and charges and records nothing', async () => {
  const { lease, log, used, post } = await leasingIngress()
  expect([await lease('slow', 8), await lease('free', 8, { route: 'GET /not' })].map(({ why }) => why)).toEqual([
    'not-allowed',
    'not-allowed',
  ])
  expect((await lease('free', 8, { route: 'GET /settled' })).why).toBe('not-allowed')
  const unsuited = [await lease('guarded', 8), await lease('none', 8), await lease('free', 8, { cost: 0 })]
  expect(unsuited.map(({ why }) => why)).toEqual(['unsuited', 'unsuited', 'unsuited'])
  // 10 of the 80 would be given; of those that are left then, none.
  expect((await lease('dark', 50)).count).toBe(10)
  expect([log.records.length, await used('free'), await used('guarded')]).toEqual([1, [0, 0], [0]])
  const { body } = await post('/v1/leases', {
    lease: [
      { subject: 'nobody', want: 8 },
      { key: 'wrong', want: 8 },
    ],
    settle: [{ id: '01934e2a-5c00-7000-8000-000000000000', subject: 'nobody', cost: 1 }],
  })
  expect(body.leases.map((one: { problem: { status: number } }) => one.problem.status)).toEqual([400, 400])
  expect(body.settled).toMatchObject([{ problem: { status: 404 } }])
})

test("A token bucket gives units ahead where it says so, and a subject's own key gets none", async () => {
  const { lease, post, subject, of } = await leasingIngress()
  expect(await lease('burst', 100)).toMatchObject({ count: 12, ends_ms: 2_000, limits: [{ name: 'bucket', used: 12 }] })
  const own = await post('/v1/leases', { lease: [{ ...of('free'), want: 8 }] }, `${subject}-free`)
  expect([own.status, own.body.title]).toEqual([403, 'Forbidden'])
  const { body } = await post('/v1/leases', {
    lease: [
      { ...of('free'), want: 0 },
      { ...of('free'), want: 8 },
    ],
  })
  expect(body.leases).toMatchObject([{ problem: { status: 400 } }, { count: 8 }])
  expect((await post('/v1/leases', { lease: {} })).status).toBe(400)
})

test('Refusals that an application repeats are one record of the second, with the limit as it stands', async () => {
  const { post, of, log } = await leasingIngress()
  await post('/v1/check', { ...of('slow'), cost: 1_000 })
  expect((await post('/v1/check', of('slow'))).body.allowed).toBe(false)
  const refused = [
    { ...of('slow'), denied_by: 'minute', count: 400 },
    { ...of('slow'), denied_by: 'minute', count: 20 },
    { ...of('slow'), denied_by: 'hour', count: 1 },
  ]
  const { body } = await post('/v1/leases', { refused })
  expect(body.refused).toMatchObject([{ recorded: true }, { recorded: true }, { problem: { status: 400 } }])
  expect(log.records.slice(2)).toMatchObject([
    { outcome: 'deny', denied_by: 'minute', reason: 'limit', count: 420, charged: 'no', limits: [{ used: 1_000 }] },
  ])
})

test('Where the journal does not take the record, no unit is given, and all of them come back', async () => {
  const { lease, log, used } = await leasingIngress()
  log.isFull = true
  expect((await lease('free', 50)).why).toBe('unavailable')
  log.isFull = false
  log.isOverdue = true
  expect((await lease('free', 50)).why).toBe('unavailable')
  log.endStall(true)
  expect(await used('free')).toEqual([0, 0])
  const [late, correction] = log.records
  expect([late?.count, correction]).toMatchObject([50, { corrects: late?.id, adjustment: -50, count_adjustment: -50 }])
})

test('A suspended subject gets no unit, and is told why; what is given and what is not is counted', async () => {
  const { lease, decisionService, used } = await leasingIngress()
  const held = await lease('held', 8)
  expect(held).toMatchObject({ count: 0, why: 'refused', result: { reason: 'blocked', suspended: 'unpaid' } })
  await lease('free', 8)
  const { declined, ...given } = decisionService.leasing.counters
  expect([declined.refused, given, await used('free')]).toEqual([1, { leases: 1, decisions: 8, refusals: 0 }, [8, 8]])
})
