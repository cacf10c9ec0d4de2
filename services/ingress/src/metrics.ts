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
    weir_redis_servers_gone: { help: 'Redis servers that are not asked', read: () => store.serversGone },
    weir_redis_breaker_opened_total: {
      help: 'Times that one was found gone',
      read: () => store.counters.breakerOpened,
    },
    weir_redis_errors_total: {
      help: "Calls that failed, by Redis's error code",
      label: 'code',
      readAll: () => store.counters.scriptErrors,
    },
    weir_late_replies_total: { help: 'Calls answered after their deadline', read: () => store.counters.lateReplies },
    weir_late_refunds_total: { help: 'Charges of late calls given back', read: () => store.counters.lateRefunds },
    weir_limits_rebased_total: { help: 'Counts begun anew before their time', read: () => store.counters.rebased },
    weir_records_appended_total: { help: 'Records taken for Kafka', read: () => records.counters.appended },
    weir_records_sent_total: { help: 'Records acknowledged by Kafka', read: () => records.counters.sent },
    weir_records_refused_total: { help: 'Records turned away at the bound', read: () => records.counters.refused },
    weir_records_waiting: { help: 'Records not acknowledged yet', read: () => records.backlog.records },
  })
}
