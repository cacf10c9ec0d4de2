import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { encodeGapOpen, kindOf } from '@weir/contracts/journal.v1.ts'
import { parseTs } from '@weir/contracts/timestamp.ts'
import { replaceFile } from '../format/state-files.ts'
import type { JournalRecord } from '../read/journal-reader.ts'
import { isNumbered, type QueuedRecord } from './partition-queue.ts'

/** The folder under the base directory; outlives the journal that a record came from. */
const folderName = 'quarantine'

const countPattern = /"count":(\d{1,15})/
const tsPattern = /"ts":"([\d :.-]{23})"/

/** The journal and topic of a record. */
interface Source {
  readonly base: string
  readonly journal: string
  readonly topicName: string
}

/**
 * Stores a record that Kafka refused for good in `base`/quarantine, synced to disk, and returns the file's path. The
 * same record goes to the same file, which a person reads, and which can be sent again by hand. Key and value are in
 * base64, for they may be anything.
 */
function store({ partition, seq, key, value }: JournalRecord, source: Source, reason: string): string {
  const { base, journal, topicName: topic } = source
  const folder = join(base, folderName)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `${journal}-${topic}-${partition}-${seq}.json`)
  const texts = { key: key.toString('base64'), value: value.toString('base64') }
  replaceFile(path, `${JSON.stringify({ reason, topic, partition, journal, seq, ...texts })}\n`, true)
  return path
}

/**
 * Puts a record that Kafka refused for good into quarantine, and gives the gap record that takes its number. Undefined
 * for what cannot be replaced: a watermark, or a gap record.
 */
export function quarantineRejected(
  refused: QueuedRecord,
  source: Source,
  reason: string,
): { readonly record: QueuedRecord; readonly path: string } | undefined {
  if (!isNumbered(refused) || kindOf(refused.value) === 'gap') return undefined
  const path = store(refused, source, reason)
  // Of a decision record; any other stands for one decision at the time of its append.
  const text = refused.value.toString('latin1')
  const count = Number(countPattern.exec(text)?.[1] ?? 1)
  const ms = parseTs(tsPattern.exec(text)?.[1] ?? '') ?? Math.round(refused.appendedMs)
  const detail = `${reason}; kept in ${path}`
  const openLine = encodeGapOpen({ cause: 'refused', count, fromMs: ms, toMs: ms, detail })
  const value = Buffer.from(`${openLine},"journal":"${source.journal}","seq":${refused.seq}}`)
  return { record: { ...refused, value }, path }
}
