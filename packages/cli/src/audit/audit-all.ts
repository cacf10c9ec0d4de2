import type { Span } from '@weir/clickhouse/audit/span.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { Discrepancy } from '@weir/core/audit/discrepancy.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { auditKafka, type MissingRecords } from './audit-kafka.ts'
import { auditNumbers } from './audit-numbers.ts'
import { auditQuotas, type CountsAbove } from './audit-quotas.ts'
import { auditRollups } from './audit-rollups.ts'
import { meteredTopics } from './metered-topics.ts'
import { readDeadLetterNumbers } from './read-dead-letters.ts'

/** What an audit works with. */
export interface AuditPorts {
  readonly clickhouse: ClickHouseClient
  readonly kafka: KafkaOptions
  readonly servers: QuotaServers
  readonly policy: Policy
  readonly nowMs: () => number
  /** Between two looks at what may be on its way; in a test at once. */
  readonly pause: () => Promise<void>
}

/** All that differs, with what a repair needs to know of it. */
export interface AuditResult {
  readonly findings: readonly Discrepancy[]
  readonly missing: readonly MissingRecords[]
  readonly above: CountsAbove
  readonly compared: { readonly offsets: number; readonly counts: number }
}

/** Rows against rollups, numbers, Kafka and Redis, over a span of time; quotas as they are now. Changes nothing. */
export async function auditAll(ports: AuditPorts, span: Span): Promise<AuditResult> {
  const { clickhouse, kafka, nowMs, pause } = ports
  const rollups = await auditRollups(clickhouse, span, nowMs(), pause)
  const findings: Discrepancy[] = [...rollups.findings]
  const missing: MissingRecords[] = []
  let offsets = 0
  for (const metered of meteredTopics) {
    const letters = () => readDeadLetterNumbers(kafka, metered.deadLetters)
    findings.push(...(await auditNumbers(clickhouse, metered, letters, span, pause)))
    const found = await auditKafka(clickhouse, kafka, metered, letters, span.fromMs)
    findings.push(...found.findings)
    missing.push(...found.missing)
    offsets += found.compared
  }
  const quotas = await auditQuotas(ports)
  findings.push(...quotas.findings)
  return { findings, missing, above: quotas.above, compared: { offsets, counts: quotas.compared } }
}
