import { type GapV1, kindOf, type MarkV1, numberOf, parseGap, parseMark } from '@weir/contracts/journal.v1.ts'
import type { ReadRecord } from './read-topic.ts'

/** One partition of one journal, read as metering reads it. */
const newPart = (journal: string, partition: number) => ({
  journal,
  partition,
  /** What tests append as `n`, in the order of the numbers; undefined for gap records. */
  ns: [] as (number | undefined)[],
  gaps: [] as GapV1[],
  marks: [] as MarkV1[],
  /** Records whose number had been there before. */
  repeats: 0,
  /** Numbers that were left out. */
  holes: 0,
  next: 0,
})

export type JournalPart = ReturnType<typeof newPart>

/** What stands in a topic, by journal and partition; repeats are dropped by their number. */
export function journalParts(records: readonly ReadRecord[]): JournalPart[] {
  const parts = new Map<string, JournalPart>()
  for (const { partition, value } of records) {
    if (value === null) throw new Error('a record without a value')
    const kind = kindOf(value)
    const mark = kind === 'mark' ? parseMark(value) : undefined
    const journal = mark?.journal ?? numberOf(value)?.journal ?? ''
    const id = `${journal}:${partition}`
    const part = parts.get(id) ?? newPart(journal, partition)
    parts.set(id, part)
    if (mark !== undefined) {
      part.marks.push(mark)
      continue
    }
    const seq = numberOf(value)?.seq ?? Number.NaN
    if (seq < part.next) part.repeats += 1
    else {
      part.holes += seq - part.next
      part.next = seq + 1
      const gap = kind === 'gap' ? parseGap(value) : undefined
      if (gap !== undefined) part.gaps.push(gap)
      part.ns.push(JSON.parse(value.toString()).n)
    }
  }
  return [...parts.values()]
}

/** All that tests appended and that is there, each as often as metering would count it, lowest first. */
export const countedNs = (parts: readonly JournalPart[]): number[] =>
  parts.flatMap(({ ns }) => ns.filter((n) => n !== undefined)).sort((a, b) => a - b)

/** The numbers that tests append. */
export const upTo = (total: number, from = 0) => Array.from({ length: total - from }, (_, n) => from + n)

/** How many different ones have come. */
export const distinct = (records: readonly ReadRecord[]) => new Set(countedNs(journalParts(records))).size

/** The partitions whose journal says that it has ended. */
export const endMarks = (records: readonly ReadRecord[]) =>
  journalParts(records).filter((part) => part.marks.at(-1)?.end === true)
