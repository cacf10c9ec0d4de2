import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { MeterCounters } from './meter-batch.ts'

/** What metering counts. docs/operating.md says what each is for. */
export function registerMetrics(register: Registry, counters: MeterCounters, lag: () => number): void {
  registerScraped(register, {
    weir_rows_inserted_total: { help: 'Decision records inserted into ClickHouse', read: () => counters.rows },
    weir_insert_batches_total: { help: 'Inserts that they came in', read: () => counters.batches },
    weir_insert_retries_total: { help: 'Inserts that ClickHouse did not take', read: () => counters.insertRetries },
    weir_dead_letters_total: { help: 'Records that could not be read', read: () => counters.deadLetters },
    weir_metering_lag_records: { help: 'Records in Kafka not yet in ClickHouse', read: lag },
  })
}
