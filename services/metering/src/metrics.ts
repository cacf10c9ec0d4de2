import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'

/** Rows of an insert: from one to what a block has at most with a session of 30 s. */
const rowBounds = [1, 10, 100, 1_000, 10_000, 22_500]

/** Returns counters at 0, which count from the start of the process, of one topic. */
export const newCounters = () => ({
  deadLetters: 0,
  insertRetries: 0,
  duplicates: 0,
  lost: 0,
  expired: 0,
  recoveries: 0,
  /** Of each insert of records that ClickHouse took. */
  insertSeconds: new Histogram(buckets.pipeline),
  insertRows: new Histogram(rowBounds),
})

/** What metering counts of one topic. */
export type MeterCounters = ReturnType<typeof newCounters>

/** Registers what metering counts, by topic. docs/monitoring.md says what each metric is for. */
export function registerMetrics(register: Registry, byTopic: ReadonlyMap<string, MeterCounters>): void {
  const labels = ['topic']
  const of =
    <T>(read: (counters: MeterCounters) => T) =>
    () =>
      [...byTopic].map(([topic, counters]) => [[topic], read(counters)] as const)
  registerScraped(register, {
    weir_insert_duration_seconds: {
      help: 'Duration of record inserts into ClickHouse',
      labels,
      histograms: of((one) => one.insertSeconds),
    },
    weir_insert_rows: { help: 'Records per insert', labels, histograms: of((one) => one.insertRows) },
    weir_insert_retries_total: { help: 'Failed inserts', labels, cells: of((one) => one.insertRetries) },
    weir_dead_letters_total: { help: 'Unreadable records', labels, cells: of((one) => one.deadLetters) },
    weir_duplicate_records_total: {
      help: 'Records dropped as duplicates by sequence number',
      labels,
      cells: of((one) => one.duplicates),
    },
    weir_lost_records_total: { help: 'Sequence numbers that never arrived', labels, cells: of((one) => one.lost) },
    weir_expired_records_total: {
      help: 'Offsets that Kafka deleted before they were read',
      labels,
      cells: of((one) => one.expired),
    },
    weir_block_recoveries_total: { help: 'Declared blocks inserted again', labels, cells: of((one) => one.recoveries) },
  })
}
