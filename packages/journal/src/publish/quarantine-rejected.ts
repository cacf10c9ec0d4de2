import { encodeGapOpen, kindOf } from '@weir/contracts/journal.v1.ts'
import { parseTs } from '@weir/contracts/timestamp.ts'
import type { JournalRecord } from '../read/journal-reader.ts'
import { isNumbered, type QueuedRecord } from './partition-queue.ts'
import { quarantine } from './quarantine.ts'

const countPattern = /"count":(\d{1,15})/
const tsPattern = /"ts":"([\d :.-]{23})"/

/** What a decision record says of itself; without it, one decision at the time of its append. */
function summaryOf({ value, appendedMs }: JournalRecord): { readonly count: number; readonly ms: number } {
  const text = value.toString('latin1')
  const ms = parseTs(tsPattern.exec(text)?.[1] ?? '') ?? Math.round(appendedMs)
  return { count: Number(countPattern.exec(text)?.[1] ?? 1), ms }
}

/**
 * Keeps a record that Kafka refused for good in a file, and gives the gap record that takes its number. Undefined for
 * what cannot be replaced: a mark, or a gap record.
 */
export function quarantineRejected(
  refused: QueuedRecord,
  where: { readonly base: string; readonly journal: string; readonly topicName: string },
  reason: string,
): { readonly record: QueuedRecord; readonly path: string } | undefined {
  if (!isNumbered(refused) || kindOf(refused.value) === 'gap') return undefined
  const { base, journal, topicName } = where
  const path = quarantine(base, { ...refused, journal, topicName }, reason)
  const { count, ms } = summaryOf(refused)
  const detail = `${reason}; kept in ${path}`
  const openLine = encodeGapOpen({ cause: 'refused', count, fromMs: ms, toMs: ms, detail })
  const value = Buffer.from(`${openLine},"journal":"${journal}","seq":${refused.seq}}`)
  return { record: { ...refused, value }, path }
}
