import { expect, test, vi } from 'vitest'
import { createDenials, type Denial, type DenialOptions } from './denials.ts'
import { createMemoryDecisionLog } from './memory-decision-log.ts'

function open(options: Partial<DenialOptions> = {}) {
  const clock = { ms: Date.parse('2026-11-21T12:00:10.500Z'), nowMs: () => clock.ms }
  const log = createMemoryDecisionLog()
  return { clock, log, denials: createDenials({ log, clock, ...options }) }
}

const denial = (given: Partial<Denial> = {}): Denial => ({
  ...{ key: 'acme', subject: 'acme', keyId: 'k', plan: 'free', route: 'GET /a', method: 'GET', cost: 2 },
  ...{ reason: 'limit', charged: 'no', deniedBy: 'minute' },
  limits: [{ name: 'minute', size: 3, used: 3, remaining: 0, resetMs: 900 }],
  ...given,
})

test('equal denials of a second are one record with their number, under one id', () => {
  const { log, denials } = open()
  const ids = [1, 2, 3].map(() => denials.record(denial(), true).id)
  expect(new Set(ids).size).toBe(1)
  expect(log.records).toMatchObject([
    {
      id: ids[0],
      key: 'acme',
      count: 3,
      cost: 2,
      outcome: 'deny',
      mode: 'enforce',
      denied_by: 'minute',
      charged: 'no',
    },
  ])
  expect(denials.counters.summed).toBe(3)
})

test.each<[string, Partial<Denial>]>([
  ['subject', { subject: 'globex' }],
  ['key', { keyId: 'l' }],
  ['plan', { plan: 'top' }],
  ['route', { route: 'GET /b' }],
  ['method', { method: 'PUT' }],
  ['cost', { cost: 3 }],
  ['reason', { reason: 'blocked' }],
  ['limit', { deniedBy: 'day' }],
  ['charge', { charged: 'unknown' }],
])('denials that differ in their %s are not summed', (_, other) => {
  const { log, denials } = open()
  const ids = [denials.record(denial(), true).id, denials.record(denial(other), true).id]
  expect(log.records).toMatchObject([
    { id: ids[0], count: 1 },
    { id: ids[1], count: 1 },
  ])
})

test('a denial that is one of its kind has a record of its own', () => {
  const { log, denials } = open()
  const ids = [denials.record(denial(), false).id, denials.record(denial(), false).id]
  expect(log.records.map(({ id, count }) => [id, count])).toEqual(ids.map((id) => [id, 1]))
})

test('beyond the bound of sums denials are recorded one by one, until the next second', () => {
  const { log, denials, clock } = open({ sumsMax: 1 })
  const others = ['a', 'b', 'b'].map((subject) => denials.record(denial({ subject }), true).id)
  denials.record(denial({ subject: 'a' }), true).id
  clock.ms += 500
  denials.record(denial({ subject: 'b' }), true).id
  expect(log.records.map(({ subject, count }) => [subject, count])).toEqual([
    ['a', 2],
    ['b', 1],
    ['b', 1],
    ['b', 1],
  ])
  expect(new Set(others).size).toBe(3)
})

test('a sum that the journal has closed is followed by another', () => {
  const { log, denials } = open()
  const first = denials.record(denial(), true).id
  log.closeSums()
  const second = denials.record(denial(), true).id
  expect(log.records).toMatchObject([
    { id: first, count: 1 },
    { id: second, count: 1 },
  ])
})

test('what the journal has no room for waits in sums, and is written with the time at which it is', () => {
  const { log, denials, clock } = open()
  log.isFull = true
  const ids = [denials.record(denial(), true).id, denials.record(denial(), false).id, denials.record(denial(), true).id]
  expect([new Set(ids).size, denials.waiting]).toEqual([1, 1])
  clock.ms += 60_000
  denials.flush()
  expect([log.records.length, denials.waiting]).toEqual([0, 1])
  log.isFull = false
  denials.flush()
  expect(log.records).toMatchObject([{ id: ids[0], count: 3, ts: '2026-11-21 12:01:10.500', limits: [] }])
  expect(denials.waiting).toBe(0)
})

test('kinds of denials beyond what may wait are told of by a gap, and have no id', () => {
  const { log, denials, clock } = open({ waitingMax: 1 })
  log.isFull = true
  denials.record(denial(), true).id
  const id = denials.record(denial({ subject: 'b' }), true).id
  clock.ms += 1_000
  denials.record(denial({ subject: 'c' }), true).id
  expect([id, denials.counters.uncounted]).toEqual([undefined, 2])
  log.isFull = false
  denials.close()
  expect(log.records).toMatchObject([
    { subject: 'acme', count: 1 },
    { gap: 'journal_full', count: 2, from: '2026-11-21 12:00:10.500', to: '2026-11-21 12:00:11.500' },
  ])
})

test('what was about to be written waits again when the disk refuses it after all', async () => {
  const { log, denials } = open()
  const id = denials.wait(denial())
  log.isStalled = true
  denials.flush()
  expect(denials.waiting).toBe(0)
  await vi.waitFor(() => expect(denials.waiting).toBe(1))
  const other = denials.wait(denial())
  expect(other).not.toBe(id)
  log.isStalled = false
  log.records.length = 0
  denials.flush()
  expect(log.records).toMatchObject([
    { id, count: 1 },
    { id: other, count: 1 },
  ])
})

test('what waited and is under way while the disk stalls waits again only if it never lands', async () => {
  for (const isThere of [true, false]) {
    const { log, denials } = open()
    denials.wait(denial())
    log.isOverdue = true
    denials.flush()
    await log.written()
    expect(denials.waiting).toBe(0)
    log.land(isThere)
    await log.written()
    expect(denials.waiting).toBe(isThere ? 0 : 1)
  }
})

test('all that waits is written at the end, however much it is', () => {
  const { log, denials } = open()
  log.isFull = true
  for (let n = 0; n < 1_000; n += 1) denials.record(denial({ subject: `s${n}` }), true).id
  log.isFull = false
  denials.close()
  expect([log.records.length, denials.waiting]).toEqual([1_000, 0])
})
