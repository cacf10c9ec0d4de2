import type { RecordLog } from '@weir/kafka/record-log.ts'
import type { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'

/** What the ingress counts. docs/operating.md says what each is for. */
export function registerMetrics(register: Registry, store: RedisLimitStore, records: RecordLog): void {
  registerScraped(register, {
    weir_decisions_total: { help: 'Decisions made by Redis', read: () => store.counters.decisions },
    weir_decision_calls_total: { help: 'Script calls that made them', read: () => store.counters.calls },
    weir_decisions_unavailable_total: { help: 'Decisions made without Redis', read: () => store.counters.unavailable },
    weir_records_appended_total: { help: 'Records taken for Kafka', read: () => records.counters.appended },
    weir_records_sent_total: { help: 'Records acknowledged by Kafka', read: () => records.counters.sent },
    weir_records_refused_total: { help: 'Records turned away at the bound', read: () => records.counters.refused },
    weir_records_waiting: { help: 'Records not acknowledged yet', read: () => records.backlog.records },
  })
}
