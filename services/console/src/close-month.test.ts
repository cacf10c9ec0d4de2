import { pricesOf } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { type Closing, closeMonth as closeAtMoment, type Ledger, openMoment } from './close-month.ts'
import { createMemoryLedger } from './testing/memory-ledger.ts'

const ms = (time: string) => Date.parse(time)
const nowMs = ms('2027-06-01T00:00:00Z')

const open = (overrides: Partial<Ledger> = {}) => createMemoryLedger(nowMs, overrides)

function closing(month: string, settings = '', more: Partial<Closing> = {}): Closing {
  const text = `
version: 1
prices: { api: { currency: EUR, lines: [{ name: all, measure: units, tiers: [{ unit_amount: "1" }] }] } }
plans: { paid: { limits: [], prices: api } }
subjects: { acme: { plan: paid${settings} } }`
  const policy = requirePolicy(text, 'test')
  const subject = policy.subjects.get('acme') ?? expect.fail('no subject')
  const prices = pricesOf(policy, subject) ?? expect.fail('no prices')
  return { subject, prices, month, graceMs: 3_600_000, acceptGaps: undefined, ...more }
}

const closeMonth = (ledger: Ledger, one: Closing, atMs: number) => closeAtMoment(ledger, openMoment(ledger), one, atMs)

const periodOf = async (ledger: Ledger, one: Closing) => {
  const closed = await closeMonth(ledger, one, nowMs)
  return closed.kind === 'closed' ? [closed.invoice.from, closed.invoice.to] : closed.because
}

test('a month that has not ended, with its grace and in its own zone, is not closed, and says when it may be', async () => {
  const { ledger, stored } = open()
  const one = closing('2026-11', ', timeZone: America/New_York')
  const early = await closeMonth(ledger, one, ms('2026-12-01T05:59:59.999Z'))
  expect(early).toEqual({
    kind: 'open',
    because: ['the month ends at 2026-12-01T05:00:00.000Z; with the grace it is closed from 2026-12-01T06:00:00.000Z'],
  })
  expect(stored.size).toBe(0)
  expect((await closeMonth(ledger, one, ms('2026-12-01T06:00:00Z'))).kind).toBe('closed')
})

test('a month whose sums are not complete is not closed, whatever gaps are accepted', async () => {
  const askCompleteness = async () => ({ completeThroughMs: ms('2026-11-30T23:59:59.999Z'), silent: [] })
  const { ledger } = open({ askCompleteness })
  expect(await periodOf(ledger, closing('2026-11', '', { acceptGaps: 'lost with the disk' }))).toEqual([
    'complete_through is 2026-11-30T23:59:59.999Z, before the end of the month at 2026-12-01T00:00:00.000Z',
  ])
})

test('silent journals and gaps keep a month open until they are accepted with a reason, which the invoice prints', async () => {
  const silent = [{ journal: 'j1', sinceMs: ms('2026-11-05T00:00:00Z') }]
  const { ledger } = open({
    askCompleteness: async () => ({ completeThroughMs: nowMs, silent }),
    askGaps: async () => ['lost in partition 0: 7'],
  })
  const missing = ['the journal j1 is silent since 2026-11-05T00:00:00.000Z', 'lost in partition 0: 7']
  expect(await periodOf(ledger, closing('2026-11'))).toEqual(missing)
  const closed = await closeMonth(ledger, closing('2026-11', '', { acceptGaps: 'lost with the disk' }), nowMs)
  const document = closed.kind === 'closed' ? JSON.parse(closed.invoice.document) : {}
  expect(document.accepted_gaps).toEqual({ reason: 'lost with the disk', missing })
})

test('a month begins where the one before ended, also after a change of zone and anchor', async () => {
  const { ledger, priced } = open()
  expect(await periodOf(ledger, closing('2026-11'))).toEqual(['2026-11-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'])
  const moved = ', timeZone: Asia/Kathmandu, anchor: 15'
  const december = ['2026-12-01T00:00:00.000Z', '2027-01-14T18:15:00.000Z']
  expect(await periodOf(ledger, closing('2026-12', moved))).toEqual(december)
  // November is priced again in its own bounds.
  expect(priced.at(-1)).toEqual({ fromMs: ms('2026-11-01T00:00:00Z'), toMs: ms('2026-12-01T00:00:00Z') })
  expect(await periodOf(ledger, closing('2027-03', moved))).toEqual([
    '2027-03-14T18:15:00.000Z',
    '2027-04-14T18:15:00.000Z',
  ])
})

test('a month before one that is closed is not closed any more, and a text that names no month is refused', async () => {
  const { ledger } = open()
  await closeMonth(ledger, closing('2026-12'), nowMs)
  expect(await periodOf(ledger, closing('2026-11'))).toEqual(['the later month 2026-12 is closed already'])
  expect(await periodOf(ledger, closing('2026-13'))).toEqual(['2026-13 is no month such as 2026-11'])
})

test('completeness is read before the cut-off, and a month that is closed asks for neither', async () => {
  const { ledger, asked } = open()
  await closeMonth(ledger, closing('2026-11'), nowMs)
  expect(asked).toEqual(['completeness', 'cutoff'])
  const again = await closeMonth(ledger, closing('2026-11', ', anchor: 9'), nowMs + 1)
  expect(asked).toHaveLength(2)
  expect(again).toMatchObject({ kind: 'closed', invoice: { closed_at: '2027-06-01T00:00:00.000Z' } })
})

test('a period whose raw rows may be gone is not priced again', async () => {
  const { ledger, priced } = open()
  await closeMonth(ledger, closing('2026-01'), nowMs)
  await closeMonth(ledger, closing('2027-04'), nowMs)
  expect(priced.map(({ fromMs }) => new Date(fromMs).toISOString().slice(0, 7))).toEqual(['2026-01', '2027-04'])
})
