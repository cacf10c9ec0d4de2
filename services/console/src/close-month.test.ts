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
  await closeMonth(ledger, closing('2026-01'), ms('2026-03-01T00:00:00Z'))
  await closeMonth(ledger, closing('2027-04'), nowMs)
  expect(priced.map(({ fromMs }) => new Date(fromMs).toISOString().slice(0, 7))).toEqual(['2026-01', '2027-04'])
})

test.each(['0000-01', '0001-01', '1960-01', '2026-05'])(
  'the month %s, of which raw rows may be gone, is not closed, whatever gaps are accepted',
  async (month) => {
    const { ledger, stored, priced } = open({ askGaps: async () => ['lost in partition 0: 7'] })
    expect(await periodOf(ledger, closing(month, '', { acceptGaps: 'lost' }))).toEqual([
      `the month began at ${month}-01T00:00:00.000Z, more than 390 days ago, and raw rows of it may be gone; ask GET /v1/usage with price=true for what it cost`,
    ])
    expect([stored.size, priced]).toEqual([0, []])
  },
)

test('a month that began less than 390 days ago is closed', async () => {
  const { ledger } = open()
  expect((await closeMonth(ledger, closing('2026-05'), ms('2027-05-25T23:59:59Z'))).kind).toBe('closed')
  expect((await closeMonth(ledger, closing('2026-06'), ms('2027-06-26T00:00:00Z'))).kind).toBe('open')
})

const policyWith = (unitAmount: string | undefined) => {
  const tiers = [{ unit_amount: unitAmount }]
  const price = { currency: 'EUR', lines: [{ name: 'all', measure: 'units', tiers }] }
  const priced = unitAmount === undefined ? {} : { prices: 'api' }
  const entities = [
    ...(unitAmount === undefined ? [] : [{ kind: 'price', name: 'api', body: JSON.stringify(price) }]),
    { kind: 'plan', name: 'p', body: JSON.stringify({ limits: [], ...priced }) },
    { kind: 'subject', name: 'acme', body: '{"plan":"p"}' },
  ]
  return { entities }
}
const historyOf = (...amounts: readonly (string | undefined)[]) => ({
  async *readPoliciesIn() {
    yield* amounts.map(policyWith)
  },
})
const totalsOf = async (history: Partial<Ledger>, more: Partial<Closing> = {}) => {
  const closed = await closeMonth(open(history).ledger, closing('2026-11', '', more), nowMs)
  return closed.kind === 'closed' ? JSON.parse(closed.invoice.document).totals[0].amount : closed
}

test('a month is priced by the last list that the subject had in it, whatever the policy says by now', async () => {
  expect(await totalsOf(historyOf('3'))).toBe('6.00')
  expect(await totalsOf(historyOf(undefined, '4', '5'), { prices: undefined })).toBe('8.00')
})

test('there is nothing to invoice of a month in which the subject had no price list, whatever gaps are accepted', async () => {
  const nothing = { kind: 'nothing', because: 'the subject had no price list in the month' }
  expect(await totalsOf(historyOf(undefined, undefined), { acceptGaps: 'lost' })).toEqual(nothing)
  expect(await totalsOf(historyOf(), { prices: undefined })).toEqual(nothing)
})

test('that the late records of a subject that has left are not invoiced is said', async () => {
  const { ledger } = open()
  await closeMonth(ledger, closing('2026-11'), nowMs)
  expect(await closeMonth(ledger, closing('2026-12', '', { deletedAtMs: ms('2026-12-01T00:00:00Z') }), nowMs)).toEqual({
    kind: 'nothing',
    because:
      'the subject was deleted at 2026-12-01T00:00:00.000Z, before the month began; what came late for its earlier months is not invoiced',
  })
})

test('where the history does not go back to the month, the list of now counts once a reason is given', async () => {
  const because = [
    "the policy's history does not go back to the end of the month: it would be priced by the list api of now",
  ]
  expect(await totalsOf(historyOf())).toEqual({ kind: 'open', because })
  expect(await totalsOf(historyOf(), { acceptGaps: 'moved from another system' })).toBe('2.00')
})
