import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../format/replace-file.ts'
import type { JournalRecord } from '../read/journal-reader.ts'

/** The folder under the base directory; outlives the journal that a record came from. */
const folderName = 'quarantine'

/** What a person reads, and what can be sent again by hand. */
interface QuarantineFile {
  readonly reason: string
  readonly topic: string
  readonly partition: number
  readonly journal: string
  readonly seq: number
  /** Both in base64, for they may be anything. */
  readonly key: string
  readonly value: string
}

/**
 * Keeps a record that Kafka refused for good in `base`/quarantine, synced to disk, before its gap record is sent. The
 * same record goes to the same file. Returns the file's path.
 */
export function quarantine(
  base: string,
  record: JournalRecord & { readonly journal: string; readonly topicName: string },
  reason: string,
): string {
  const { journal, topicName: topic, partition, seq } = record
  const folder = join(base, folderName)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `${journal}-${topic}-${partition}-${seq}.json`)
  const key = record.key.toString('base64')
  const value = record.value.toString('base64')
  const file: QuarantineFile = { reason, topic, partition, journal, seq, key, value }
  replaceFile(path, `${JSON.stringify(file)}\n`, true)
  return path
}
