import { expect, test } from 'vitest'
import { createMemoryDecisionLog } from '../testing/memory-decision-log.ts'
import type { Correction } from './correction-record.ts'
import { Corrections } from './corrections.ts'

const tsMs = Date.parse('2026-11-21T12:00:00Z')
const context = { tsMs, keyId: 'k', plan: 'free', route: 'GET /a', method: 'GET' }
const correction = (n: number): Correction => ({
  decisionId: `019a9d3e-0000-7000-8000-00000000000${n}`,
  subject: 'acme',
  context,
  adjustment: -n,
  charged: 'no',
  limits: [],
})

test('a correction that a full journal or a failing disk does not accept is appended again, until it is written', async () => {
  const log = createMemoryDecisionLog()
  const corrections = new Corrections(log)
  log.isFull = true
  corrections.record(correction(1))
  log.isFull = false
  log.isStalled = true
  corrections.record(correction(2))
  expect(log.records.map(({ adjustment }) => adjustment)).toEqual([-2])
  log.records.length = 0
  log.isStalled = false
  await expect.poll(() => log.records.map(({ adjustment }) => adjustment)).toEqual([-1, -2])
  await expect.poll(() => corrections.counters).toEqual({ recorded: 2, lost: 0 })
  expect(corrections.close()).toBe(0)
})

test('a correction that a stalled disk may still write is not appended again before it is certain that it is not written', async () => {
  for (const isThere of [true, false]) {
    const log = createMemoryDecisionLog()
    const corrections = new Corrections(log)
    log.isOverdue = true
    corrections.record(correction(1))
    corrections.close()
    expect(log.records).toHaveLength(1)
    log.endStall(isThere)
    await log.writtenInTime()
    corrections.close()
    expect(log.records).toHaveLength(isThere ? 1 : 2)
  }
})

test('corrections beyond the bound are counted as lost, and those that the journal does not accept at the end are reported', () => {
  const log = createMemoryDecisionLog()
  log.isFull = true
  const corrections = new Corrections(log, 2)
  for (const n of [1, 2, 3]) corrections.record(correction(n))
  expect([corrections.counters.lost, corrections.close()]).toEqual([1, 2])
})
