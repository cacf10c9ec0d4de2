import { expect, test } from 'vitest'
import { createMemoryDecisionLog } from '../testing/memory-decision-log.ts'
import { DecisionRecorder } from './decision-recorder.ts'
import type { Denial } from './decision-records.ts'

function open(coalescedMax?: number) {
  const clock = { ms: Date.parse('2026-11-21T12:00:10.500Z'), nowMs: () => clock.ms }
  const log = createMemoryDecisionLog()
  return { clock, log, recorder: new DecisionRecorder(log, clock, 'refuse', { coalescedMax }) }
}

const denial = (given: Partial<Denial> = {}): Denial => ({
  key: 'acme',
  subject: 'acme',
  keyId: 'k',
  plan: 'free',
  route: 'GET /a',
  method: 'GET',
  cost: 2,
  reason: 'limit',
  charged: 'no',
  deniedBy: 'minute',
  limits: [{ name: 'minute', size: 3, used: 3, remaining: 0, resetMs: 900 }],
  ...given,
})

test('equal denials of a second are one record with their number, under one id', () => {
  const { log, recorder } = open()
  const ids = [1, 2, 3].map(() => recorder.appendDenial(denial(), true))
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
  expect(recorder.counters.coalesced).toBe(3)
})

/** Equal refusals may differ in these; a new column is here or below. */
type Shared = 'key' | 'shadowedBy' | 'retryMs' | 'traced'

const others: Readonly<Record<Exclude<keyof Denial, Shared>, Partial<Denial>>> = {
  subject: { subject: 'globex' },
  keyId: { keyId: 'l' },
  plan: { plan: 'top' },
  route: { route: 'GET /b' },
  method: { method: 'PUT' },
  cost: { cost: 3 },
  reason: { reason: 'blocked' },
  deniedBy: { deniedBy: 'day' },
  charged: { charged: 'unknown' },
  ip: { ip: '192.0.2.1' },
  policy: { policy: 413 },
  units: { units: { tokens: 3 } },
  meter: { meter: 'chat' },
  dims: { dims: { model: 'small' } },
  parents: { parents: ['team-a'] },
  limits: { limits: [{ name: 'minute', size: 3, used: 3, remaining: 0, resetMs: 900, by: { route: '*' } }] },
}

test.each(Object.entries(others))('denials that differ in their %s are not coalesced', (_, other) => {
  const { log, recorder } = open()
  const ids = [recorder.appendDenial(denial(), true), recorder.appendDenial(denial(other), true)]
  expect(log.records).toMatchObject([
    { id: ids[0], count: 1 },
    { id: ids[1], count: 1 },
  ])
})

test('a denial that is one of its kind has a record of its own', () => {
  const { log, recorder } = open()
  const ids = [recorder.appendDenial(denial(), false), recorder.appendDenial(denial(), false)]
  expect(log.records.map(({ id, count }) => [id, count])).toEqual(ids.map((id) => [id, 1]))
})

test('beyond the bound of coalesced records denials are recorded one by one, until the next second', () => {
  const { log, recorder, clock } = open(1)
  const others = ['a', 'b', 'b'].map((subject) => recorder.appendDenial(denial({ subject }), true))
  recorder.appendDenial(denial({ subject: 'a' }), true)
  clock.ms += 500
  recorder.appendDenial(denial({ subject: 'b' }), true)
  expect(log.records.map(({ subject, count }) => [subject, count])).toEqual([
    ['a', 2],
    ['b', 1],
    ['b', 1],
    ['b', 1],
  ])
  expect(new Set(others).size).toBe(3)
})

test('a coalesced record that the journal has closed is followed by another', () => {
  const { log, recorder } = open()
  const first = recorder.appendDenial(denial(), true)
  log.closeCoalesced()
  const second = recorder.appendDenial(denial(), true)
  expect(log.records).toMatchObject([
    { id: first, count: 1 },
    { id: second, count: 1 },
  ])
})

test('a denial that the journal does not accept has no id, and is appended once: the journal counts what it misses', () => {
  const { log, recorder } = open()
  const known = recorder.appendDenial(denial(), true)
  log.isFull = true
  log.closeCoalesced()
  const ids = [denial(), denial({ subject: 'b' })].flatMap((one) => [
    recorder.appendDenial(one, true),
    recorder.appendDenial(one, false),
  ])
  expect(ids).toEqual([undefined, undefined, undefined, undefined])
  expect([log.missed, log.records]).toMatchObject([4, [{ id: known, count: 1 }]])
})
