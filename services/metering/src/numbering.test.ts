import { expect, it } from 'vitest'
import { type Lost, Numbering } from './numbering.ts'

const journal = '7b1f4b8a-0000-4000-8000-000000000001'
const other = '7b1f4b8a-0000-4000-8000-000000000002'

function setUp(highest: ReadonlyMap<string, number> = new Map()) {
  const numbering = new Numbering(highest)
  const lost: Lost[] = []
  const take = (seq: number, position: number, of = journal) => numbering.take(numbering.find(of), seq, position, lost)
  return { numbering, lost, take }
}

it('takes each number of each journal once, also after a restart', () => {
  const { take, lost } = setUp(new Map([[journal, 4]]))
  expect([4, 5, 5, 6, 5].map((seq, at) => take(seq, at))).toEqual([false, true, false, true, false])
  expect(take(0, 9, other)).toBe(true)
  expect(lost).toEqual([])
})

it('a jump proves a loss, from the very first number on', () => {
  const { take, lost } = setUp()
  take(2, 0)
  take(5, 1)
  expect(lost).toEqual([
    { journal, fromSeq: 0, toSeq: 1, count: 2 },
    { journal, fromSeq: 3, toSeq: 4, count: 2 },
  ])
})

it('dead letters between two neighbours stand for what is missing there, each once', () => {
  const { numbering, take, lost } = setUp()
  take(0, 10)
  numbering.takeUnreadable(undefined, 11)
  take(2, 12)
  expect(lost).toEqual([])
  take(4, 13)
  expect(lost).toEqual([{ journal, fromSeq: 3, toSeq: 3, count: 1 }])
})

it('an unreadable record is believed the very next number, and no other', () => {
  const { numbering, take } = setUp()
  take(0, 0)
  expect(numbering.takeUnreadable({ journal, seq: 1_000_000 }, 1)).toBe(false)
  expect(numbering.takeUnreadable({ journal: other, seq: 0 }, 2)).toBe(false)
  expect(numbering.takeUnreadable({ journal, seq: 1 }, 3)).toBe(true)
  expect(take(2, 4)).toBe(true)
})

it('what a block did is undone whole, or kept', () => {
  const { numbering, take, lost } = setUp(new Map([[journal, 0]]))
  take(1, 0)
  numbering.takeUnreadable(undefined, 1)
  numbering.undo()
  expect(take(1, 0)).toBe(true)
  numbering.keep()
  numbering.undo()
  expect(take(1, 0)).toBe(false)
  take(3, 2)
  expect(lost).toHaveLength(1)
})

it('finds journals by the bytes in front of a number, and nothing that only looks so', () => {
  const { numbering } = setUp()
  const bytes = Buffer.from(`{"a":1,"journal":"${journal}","seq":1}`)
  const at = bytes.indexOf(',"journal"')
  expect(numbering.findByTail(bytes, at)).toBe(numbering.find(journal))
  expect(numbering.findByTail(bytes, at + 1)).toBeUndefined()
  const another = Buffer.from(bytes.toString().replace(journal, other))
  expect(numbering.findByTail(another, at)?.journal).toBe(other)
})
