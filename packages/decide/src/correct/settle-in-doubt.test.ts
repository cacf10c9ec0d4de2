import { decision } from '@weir/core/limits/testing/build-decision.ts'
import { expect, test, vi } from 'vitest'
import type { Settlements } from '../ports.ts'
import { createMemoryDecisionLog } from '../testing/memory-decision-log.ts'
import { Corrections } from './corrections.ts'
import { Settling } from './settle.ts'

const tsMs = Date.parse('2026-11-21T12:00:00Z')
const context = { tsMs, keyId: 'k', plan: 'free', route: 'GET /a', method: 'GET' }

/** Redis has settled a decision from 10 units to 4, and takes its record for pending until that is confirmed. */
function open() {
  const settlement = { subject: 'acme', id: '019a9d3e-0000-7000-8000-000000000001', cost: 4 }
  const told: string[] = []
  const settlements: Settlements = {
    settle: async ({ cost = 10 }) => ({
      kind: 'settled',
      cost,
      chargedCost: 10,
      context: JSON.stringify(context),
      limits: [],
      settledAtUs: tsMs * 1_000,
      isRecordPending: told.length === 0,
    }),
    confirmRecorded: async ({ id }) => told.push(id) > 0,
    renew: async () => ({ kind: 'unknown' }),
  }
  const log = createMemoryDecisionLog()
  const settling = new Settling({
    settlements,
    store: { refund: async () => true },
    log,
    corrections: new Corrections(log),
  })
  return { log, told, settling, settle: async () => (await settling.settle(settlement)).kind }
}

test('a correction that the disk dropped is written by the repeat, before Redis learns that it is safe', async () => {
  const { log, told, settle } = open()
  log.isStalled = true
  expect(await settle()).toBe('unrecorded')
  log.records.length = 0
  log.isStalled = false
  expect(await settle()).toBe('settled')
  expect([log.records.length, told.length]).toEqual([1, 1])
})

test('a correction whose write is in doubt is not written again; once it is certain to be dropped, it is', async () => {
  for (const isThere of [true, false]) {
    const { log, told, settle } = open()
    log.isOverdue = true
    expect([await settle(), await settle()]).toEqual(['unrecorded', 'unrecorded'])
    expect(log.records).toHaveLength(1)
    log.endStall(isThere)
    await log.writtenInTime()
    expect([await settle(), told.length]).toEqual(['settled', 1])
    expect(log.records).toHaveLength(isThere ? 1 : 2)
  }
})

test('the refund of a request that its upstream failed is recorded again where the journal did not accept it, until it is written', async () => {
  const { log, told, settling } = open()
  const scope = { subject: 'acme', keyId: 'k', ip: '', route: 'GET /a', method: 'GET' }
  const id = '019a9d3e-0000-7000-8000-000000000001'
  const reservation = { id, ttlMs: 60_000, context: JSON.stringify(context) }
  const plain = { scope, cost: 10, peek: false, limits: [], timeZone: 'UTC', anchor: 1, idempotency: undefined }
  log.isStalled = true
  const given = settling.refund({ id, context, request: { ...plain, reservation }, decision: decision({}) })
  await vi.waitUntil(() => log.records.length === 1)
  log.records.length = 0
  log.isStalled = false
  await given
  expect([log.records.map(({ corrects }) => corrects), told]).toEqual([[id], [id]])
})
