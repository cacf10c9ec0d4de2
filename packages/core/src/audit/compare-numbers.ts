import type { Finding } from './finding.ts'
import { countOf, type Range, rangesText, uncovered } from './ranges.ts'

/** Missing numbers of a journal, and the offsets of the rows on either side. */
export interface Hole extends Range {
  /** -1 before the first row. */
  readonly afterOffset: number
  /** Infinity behind the last row. */
  readonly beforeOffset: number
}

/** The numbers that the rows of one journal in one partition have. */
export interface JournalNumbers {
  readonly topic: string
  readonly journal: string
  readonly partition: number
  readonly rows: number
  /** Different numbers among them. */
  readonly numbers: number
  /** Between 0 and what the journal itself has said that it numbered. */
  readonly holes: readonly Hole[]
}

/** Numbers that are known to be missing: recorded gaps, and dead letters whose number can be read. */
export interface KnownMissing {
  readonly topic: string
  readonly journal: string
  readonly partition: number
  readonly range: Range
}

/** Where a dead letter came from. */
export interface DeadLetterPlace {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

const samePlace = (one: { topic: string; partition: number }, other: { topic: string; partition: number }) =>
  one.topic === other.topic && one.partition === other.partition

/** What of a hole neither is known to be missing, nor may be dead letters that lie between the rows around it. */
function lostOf(
  numbers: JournalNumbers,
  hole: Hole,
  known: readonly Range[],
  letters: readonly DeadLetterPlace[],
): Range[] {
  const lost = uncovered(hole, known)
  const between = letters.filter(
    (letter) => samePlace(letter, numbers) && letter.offset > hole.afterOffset && letter.offset < hole.beforeOffset,
  )
  return between.length >= countOf(lost) ? [] : lost
}

/** Where records are missing or stand twice, by their numbers. */
export function numberFindings(
  journals: readonly JournalNumbers[],
  known: readonly KnownMissing[],
  letters: readonly DeadLetterPlace[],
): Finding[] {
  return journals.flatMap((one): Finding[] => {
    const { topic, journal, partition, rows, numbers, holes } = one
    const where = `${topic}, partition ${partition}, journal ${journal}`
    const ranges = known.filter((other) => samePlace(other, one) && other.journal === journal).map(({ range }) => range)
    const lost = holes.flatMap((hole) => lostOf(one, hole, ranges, letters))
    const common = { check: 'numbers', where } as const
    const missing: Finding = {
      ...common,
      what: 'missing records',
      expected: '0',
      found: String(countOf(lost)),
      note: `numbers ${rangesText(lost)}`,
    }
    const twice: Finding = {
      ...common,
      what: 'records that stand twice',
      expected: '0',
      found: String(rows - numbers),
      note: 'nothing here mends it: delete the rows that are too many, then run --repair',
    }
    return [...(lost.length > 0 ? [missing] : []), ...(rows > numbers ? [twice] : [])]
  })
}
