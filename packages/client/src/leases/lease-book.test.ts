import { expect, test } from 'vitest'
import type { CheckResult } from '../check-result.ts'
import { type GivenLease, LeaseBook, type LeaseQuestion, type Round } from './lease-book.ts'

const question = (name: string): LeaseQuestion => ({ name, body: { subject: name } })
const [acme, bolt] = [question('acme'), question('bolt')]

let leases = 0
function lease(count: number, more: Partial<GivenLease> = {}): GivenLease {
  leases += 1
  return {
    id: `lease-${leases}`,
    subject: 'acme',
    count,
    cost: 1,
    endsMs: 2_000,
    lifeMs: 2_000,
    limits: [],
    headers: [],
    ...more,
  }
}

const refusal = (retryAfterMs: number, more: Partial<CheckResult> = {}): CheckResult => ({
  allowed: false,
  reason: 'limit',
  id: 'd',
  deniedBy: 'minute',
  retryAfterMs,
  onExceed: undefined,
  challenge: undefined,
  limits: [],
  headers: {},
  ...more,
})

/** A book whose question acme holds so many units from 0 on. */
function holding(count: number, more: Partial<GivenLease> = {}) {
  const book = new LeaseBook(10)
  book.askedSingly(acme, -10)
  book.askedSingly(acme, -5)
  const round = roundAt(book, 0)
  book.answered(round, [lease(count, more)], 0, 1)
  return book
}

function roundAt(book: LeaseBook, ms: number): Round {
  const round = book.takeRound(ms)
  if (round === undefined) throw new Error(`nothing to send at ${ms}`)
  return round
}

const decisions = (book: LeaseBook, count: number, ms: number) =>
  Array.from({ length: count }, () => book.decide('acme', ms)).filter((one) => one !== undefined).length

test('A question that comes twice within half a life wishes for units, at once; one that comes seldom does not', () => {
  const book = new LeaseBook(10)
  book.askedSingly(acme, 0)
  book.askedSingly(acme, 501)
  expect([book.takeRound(501), book.hasWork]).toEqual([undefined, false])
  book.askedSingly(acme, 1_001)
  expect(roundAt(book, 1_001)).toEqual({ settle: [], refused: [], lease: [{ question: acme, want: 8 }] })
  // As much as half a life of it would take, 64 at most.
  const quick = new LeaseBook(10)
  for (const ms of [0, 20]) quick.askedSingly(acme, ms)
  expect(roundAt(quick, 20).lease[0]?.want).toBe(25)
  for (const ms of [39, 40]) quick.askedSingly(bolt, ms)
  expect(roundAt(quick, 40).lease[0]?.want).toBe(64)
  // On its way, it is not wished for again.
  book.askedSingly(acme, 1_002)
  expect(book.takeRound(2_000)).toBeUndefined()
})

test('Units decide until they are used up or their time is over, and never more', () => {
  expect(decisions(holding(8), 20, 10)).toBe(8)
  // A thousandth and a millisecond before its end.
  expect([decisions(holding(8), 1, 1_996.9), decisions(holding(8), 1, 1_997)]).toEqual([1, 0])
  expect(holding(8).decide('bolt', 10)).toBeUndefined()
})

test('At half a lease the next is wished for, as large as half a life needs, and takes over when the first is used up', () => {
  const book = holding(40)
  expect(decisions(book, 19, 10)).toBe(19)
  expect(book.hasWork).toBe(false)
  expect(decisions(book, 1, 110)).toBe(1)
  // 20 in 100 ms are 200 in a second, at most four times as many as before.
  const round = roundAt(book, 110)
  expect(round.lease).toEqual([{ question: acme, want: 160 }])
  book.answered(round, [lease(160)], 110, 120)
  expect(decisions(book, 500, 130)).toBe(180)
  const slow = holding(40)
  for (let n = 1; n <= 20; n += 1) slow.decide('acme', n * 50)
  // 20 in 950 ms.
  expect(roundAt(slow, 1_000).lease[0]?.want).toBe(21)
})

test('Rounds come no closer than 100 ms or an eighth of a life, but for a question that has no units', () => {
  const book = holding(20)
  decisions(book, 10, 10)
  expect([book.takeRound(10), book.dueMs()]).toEqual([undefined, 100])
  expect(roundAt(book, 100).lease).toHaveLength(1)
  book.askedSingly(bolt, 110)
  book.askedSingly(bolt, 111)
  expect([book.takeRound(111), book.dueMs()]).toEqual([undefined, 120])
  expect(roundAt(book, 120).lease).toEqual([{ question: bolt, want: 64 }])
  const short = holding(20, { endsMs: 160, lifeMs: 160 })
  decisions(short, 10, 1)
  expect(short.dueMs()).toBe(20)
})

test('What is not used in time is given back with what was used, once', () => {
  const book = holding(40, { cost: 5 })
  decisions(book, 7, 10)
  expect(book.dueMs()).toBe(1_997)
  const round = roundAt(book, 2_000)
  expect(round.settle).toMatchObject([{ subject: 'acme', cost: 35 }])
  book.answered(round, [], 2_000, 2_010)
  expect([book.takeRound(3_000), book.counters.returned]).toEqual([undefined, 1])
})

test('A late answer is used for what is left of its time, and given back whole when it is over', () => {
  const book = new LeaseBook(10)
  book.askedSingly(acme, 0)
  book.askedSingly(acme, 1)
  const round = roundAt(book, 1)
  book.answered(round, [lease(8)], 1, 1_900)
  expect(decisions(book, 1, 1_997)).toBe(1)
  expect(decisions(book, 9, 1_999)).toBe(0)
  const other = new LeaseBook(10)
  other.askedSingly(acme, 0)
  other.askedSingly(acme, 1)
  other.answered(roundAt(other, 1), [lease(8)], 1, 2_500)
  expect(decisions(other, 1, 2_500)).toBe(0)
  expect(roundAt(other, 2_600).settle).toMatchObject([{ cost: 0 }])
})

test('A lost round leaves its wishes to checks for a while, and repeats what it gave back, ever more seldom', () => {
  const book = holding(40)
  const first = roundAt(book, 2_000)
  book.lost(first, 2_100)
  expect([book.takeRound(3_000), book.dueMs()]).toEqual([undefined, 3_100])
  const again = roundAt(book, 3_100)
  expect(again.settle).toMatchObject([{ id: first.settle[0]?.id, cost: 0 }])
  book.lost(again, 3_200)
  expect(book.dueMs()).toBe(5_200)
  // It may have been settled: that is known for a quarter of an hour.
  book.lost(roundAt(book, 800_000), 902_101)
  expect([book.takeRound(990_000), book.counters.lost]).toEqual([undefined, 1])
  const single = new LeaseBook(10)
  single.askedSingly(acme, 0)
  single.askedSingly(acme, 1)
  single.lost(roundAt(single, 1), 10)
  for (const ms of [20, 30, 1_009]) single.askedSingly(acme, ms)
  expect(single.takeRound(1_009)).toBeUndefined()
  single.askedSingly(acme, 1_011)
  expect(roundAt(single, 1_011).lease).toHaveLength(1)
})

test('What a server has not done is done again: what it was told, and what was given back, but no wish for a while', () => {
  const book = holding(8)
  decisions(book, 8, 10)
  book.answeredSingly('acme', refusal(30_000), 20)
  decisions(book, 5, 30)
  const round = roundAt(book, 200)
  book.lost(round, 210, { wasUndone: true, plainMs: 60_000 })
  expect(roundAt(book, 1_210).refused).toMatchObject([{ deniedBy: 'minute', count: 5 }])
})

test('Units that the server knows nothing of any more are lost, and others asked for again a second later', () => {
  const book = holding(40)
  const round = roundAt(book, 2_000)
  book.answered(round, [], 2_000, 2_010)
  for (const one of round.settle) book.unsettled(one, 2_010, false)
  expect([book.takeRound(2_500), book.counters.returned]).toEqual([undefined, 0])
  const again = roundAt(book, 3_010)
  book.answered(again, [], 3_010, 3_020)
  for (const one of again.settle) book.unsettled(one, 3_020, true)
  expect(book.counters).toMatchObject({ returned: 0, lost: 1 })
})

test('A refusal holds for its time and a second at most, is counted and told, and then asked about again', () => {
  const book = holding(8)
  decisions(book, 8, 10)
  book.answeredSingly('acme', refusal(30_000), 20)
  expect(decisions(book, 5, 500)).toBe(5)
  expect(roundAt(book, 501).refused).toEqual([{ question: acme, deniedBy: 'minute', count: 5 }])
  expect(decisions(book, 2, 1_019)).toBe(2)
  expect(book.decide('acme', 1_020)).toBeUndefined()
  expect(roundAt(book, 1_021).refused).toEqual([{ question: acme, deniedBy: 'minute', count: 2 }])
  expect(book.counters).toMatchObject({ decided: 8, refused: 7 })
  book.answeredSingly('acme', refusal(40), 1_030)
  expect([book.decide('acme', 1_069), book.decide('acme', 1_070)]).toEqual([expect.anything(), undefined])
})

test('No refusal is held of a question that the policy gives no units for, or that somebody waits for', () => {
  const book = new LeaseBook(10)
  book.askedSingly(acme, 0)
  book.answeredSingly('acme', refusal(500), 1)
  expect(book.decide('acme', 2)).toBeUndefined()
  book.askedSingly(acme, 3)
  book.answered(roundAt(book, 3), [{ plainMs: 60_000, isBarred: true }], 3, 4)
  book.answeredSingly('acme', refusal(500), 5)
  for (const other of [{ reason: 'blocked' }, { onExceed: 'delay' }]) {
    const held = holding(8)
    decisions(held, 8, 10)
    held.answeredSingly('acme', refusal(500, other), 20)
    expect(held.decide('acme', 21)).toBeUndefined()
  }
  expect(book.decide('acme', 6)).toBeUndefined()
  for (const ms of [100, 101, 59_000]) book.askedSingly(acme, ms)
  expect(book.takeRound(60_000)).toBeUndefined()
})

test('Beyond its bound the oldest question is forgotten, and what it held given back', () => {
  const book = new LeaseBook(1)
  book.askedSingly(acme, 0)
  book.askedSingly(acme, 1)
  book.answered(roundAt(book, 1), [lease(8)], 1, 2)
  book.askedSingly(bolt, 3)
  expect(book.decide('acme', 4)).toBeUndefined()
  expect(roundAt(book, 300).settle).toMatchObject([{ cost: 0 }])
})

test('A book that is closed gives everything back, tells its refusals, and takes nothing more', () => {
  const book = holding(40)
  decisions(book, 25, 10)
  const wish = roundAt(book, 300)
  book.close()
  expect(roundAt(book, 320).settle).toMatchObject([{ cost: 25 }])
  book.answered(wish, [lease(40)], 300, 330)
  expect(roundAt(book, 450).settle).toMatchObject([{ cost: 0 }])
  book.askedSingly(acme, 460)
  book.askedSingly(acme, 461)
  expect([book.decide('acme', 462), book.takeRound(900)]).toEqual([undefined, undefined])
})
