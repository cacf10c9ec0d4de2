import type { Discrepancy } from './discrepancy.ts'
import { countOf, type Range, rangesText, uncovered } from './ranges.ts'

/** Sequence numbers of a journal that no row has, and the offsets of the rows on either side. */
export interface MissingRange extends Range {
  /** -1 before the first row. */
  readonly afterOffset: number
  /** Infinity behind the last row. */
  readonly beforeOffset: number
}

/** The sequence numbers that the rows of one journal in one partition have. */
export interface JournalNumbers {
  readonly topic: string
  readonly journal: string
  readonly partition: number
  readonly rows: number
  /** Different numbers among them. */
  readonly numbers: number
  /** The numbers that no row has, between 0 and the last that the journal itself reported. */
  readonly missing: readonly MissingRange[]
}

/** Numbers that are known to be missing: recorded gaps, and dead letters whose number can be read. */
export interface KnownMissing extends Pick<JournalNumbers, 'topic' | 'journal' | 'partition'> {
  readonly range: Range
}

/** Where a dead letter came from. */
export interface DeadLetterPosition {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

const samePosition = (one: { topic: string; partition: number }, other: { topic: string; partition: number }) =>
  one.topic === other.topic && one.partition === other.partition

/** The part of a missing range that neither a recorded gap nor dead letters between the rows around it explain. */
function lostOf(
  numbers: JournalNumbers,
  range: MissingRange,
  known: readonly Range[],
  letters: readonly DeadLetterPosition[],
): Range[] {
  const lost = uncovered(range, known)
  const between = letters.filter(
    (letter) =>
      samePosition(letter, numbers) && letter.offset > range.afterOffset && letter.offset < range.beforeOffset,
  )
  return between.length >= countOf(lost) ? [] : lost
}

/** Returns where records are missing or are there twice, by their numbers. */
export function numberDiscrepancies(
  journals: readonly JournalNumbers[],
  known: readonly KnownMissing[],
  letters: readonly DeadLetterPosition[],
): Discrepancy[] {
  return journals.flatMap((one): Discrepancy[] => {
    const { topic, journal, partition, rows, numbers, missing } = one
    const where = `${topic}, partition ${partition}, journal ${journal}`
    const ranges = known
      .filter((other) => samePosition(other, one) && other.journal === journal)
      .map(({ range }) => range)
    const lost = missing.flatMap((range) => lostOf(one, range, ranges, letters))
    const common = { check: 'numbers', where, expected: '0' } as const
    const notThere: Discrepancy = {
      ...common,
      what: 'missing records',
      found: String(countOf(lost)),
      note: `numbers ${rangesText(lost)}`,
    }
    const twice: Discrepancy = {
      ...common,
      what: 'records that stand twice',
      found: String(rows - numbers),
      note: 'no repair removes rows: delete the rows that are too many, then run --repair',
    }
    return [...(lost.length > 0 ? [notThere] : []), ...(rows > numbers ? [twice] : [])]
  })
}
