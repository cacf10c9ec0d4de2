import type { JournalRecord, Quarantined } from './ports.ts'

/**
 * Keeps a record that Kafka refused for good in `base`/quarantine, synced to disk, before its gap record is sent. The same record
 * goes to the same file.
 */
export function quarantine(
  base: string,
  _record: JournalRecord & { readonly journal: string; readonly topicName: string },
  _reason: string,
): Quarantined {
  throw new Error(`not there yet: ${base}`)
}
