import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'

/** Returns counters at 0, which count from the start of the process, over both topics. */
export const newCounters = () => ({
  rows: 0,
  batches: 0,
  deadLetters: 0,
  insertRetries: 0,
  duplicates: 0,
  lost: 0,
  expired: 0,
  recoveries: 0,
})

/** What metering counts. */
export type MeterCounters = ReturnType<typeof newCounters>

/** Registers what metering counts. docs/operating.md says what each metric is for. */
export function registerMetrics(
  register: Registry,
  counters: MeterCounters,
  now: { readonly lag: () => number; readonly stopped: () => number },
): void {
  registerScraped(register, {
    weir_rows_inserted_total: { help: 'Records inserted into ClickHouse', read: () => counters.rows },
    weir_insert_batches_total: { help: 'Blocks that they came in', read: () => counters.batches },
    weir_insert_retries_total: { help: 'Inserts that failed and were retried', read: () => counters.insertRetries },
    weir_dead_letters_total: { help: 'Records that could not be read', read: () => counters.deadLetters },
    weir_duplicate_records_total: { help: 'Records dropped by their number', read: () => counters.duplicates },
    weir_lost_records_total: { help: 'Numbers that never came', read: () => counters.lost },
    weir_expired_records_total: { help: 'Offsets that Kafka deleted unread', read: () => counters.expired },
    weir_block_recoveries_total: { help: 'Declared blocks inserted once more', read: () => counters.recoveries },
    weir_metering_lag_records: { help: 'Records in Kafka not yet in ClickHouse', read: now.lag },
    weir_metering_partitions_stopped: { help: 'Partitions that wait for a person', read: now.stopped },
  })
}
