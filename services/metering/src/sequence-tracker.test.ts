import { expect, it } from 'vitest'
import { type MissingRange, SequenceTracker } from './sequence-tracker.ts'

const journal = '7b1f4b8a-0000-4000-8000-000000000001'
const other = '7b1f4b8a-0000-4000-8000-000000000002'

function setUp(highest: ReadonlyMap<string, number> = new Map()) {
  const sequences = new SequenceTracker(highest)
  const missing: MissingRange[] = []
  const accept = (seq: number, position: number, of = journal) =>
    sequences.accept(sequences.find(of), seq, position, missing)
  return { sequences, missing, accept }
}

it('each number of each journal is accepted once, also after a restart', () => {
  const { accept, missing } = setUp(new Map([[journal, 4]]))
  expect([4, 5, 5, 6, 5].map((seq, at) => accept(seq, at))).toEqual([false, true, false, true, false])
  expect(accept(0, 9, other)).toBe(true)
  expect(missing).toEqual([])
})

it('a jump proves a loss, from the very first number on', () => {
  const { accept, missing } = setUp()
  accept(2, 0)
  accept(5, 1)
  expect(missing).toEqual([
    { journal, fromSeq: 0, toSeq: 1, count: 2 },
    { journal, fromSeq: 3, toSeq: 4, count: 2 },
  ])
})

it('dead letters between two records account for the numbers that are missing there, each for one', () => {
  const { sequences, accept, missing } = setUp()
  accept(0, 10)
  sequences.acceptUnreadable(undefined, 11)
  accept(2, 12)
  expect(missing).toEqual([])
  accept(4, 13)
  expect(missing).toEqual([{ journal, fromSeq: 3, toSeq: 3, count: 1 }])
})

it('the number of an unreadable record counts if it is the very next one, and no other does', () => {
  const { sequences, accept } = setUp()
  accept(0, 0)
  expect(sequences.acceptUnreadable({ journal, seq: 1_000_000 }, 1)).toBe(false)
  expect(sequences.acceptUnreadable({ journal: other, seq: 0 }, 2)).toBe(false)
  expect(sequences.acceptUnreadable({ journal, seq: 1 }, 3)).toBe(true)
  expect(accept(2, 4)).toBe(true)
})

it('what a block changed is rolled back whole, or committed', () => {
  const { sequences, accept, missing } = setUp(new Map([[journal, 0]]))
  accept(1, 0)
  sequences.acceptUnreadable(undefined, 1)
  sequences.rollBack()
  expect(accept(1, 0)).toBe(true)
  sequences.commit()
  sequences.rollBack()
  expect(accept(1, 0)).toBe(false)
  accept(3, 2)
  expect(missing).toHaveLength(1)
})

it('a journal is found by the bytes before the number, and similar bytes are none', () => {
  const { sequences } = setUp()
  const bytes = Buffer.from(`{"a":1,"journal":"${journal}","seq":1}`)
  const at = bytes.indexOf(',"journal"')
  expect(sequences.findByTail(bytes, at)).toBe(sequences.find(journal))
  expect(sequences.findByTail(bytes, at + 1)).toBeUndefined()
  const another = Buffer.from(bytes.toString().replace(journal, other))
  expect(sequences.findByTail(another, at)?.journal).toBe(other)
})
