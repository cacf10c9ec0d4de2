import { readJournalNumbers, readRecordedGaps } from '@weir/clickhouse/audit/journal-numbers.ts'
import type { Span } from '@weir/clickhouse/audit/rollups.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { numberDiscrepancies } from '@weir/core/audit/compare-numbers.ts'
import type { Discrepancy } from '@weir/core/audit/discrepancy.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { QuotaServers } from '@weir/redis/quota-counts.ts'
import { auditKafka, type MissingRecords } from './audit-kafka.ts'
import { auditQuotas } from './audit-quotas.ts'
import { auditRollups } from './audit-rollups.ts'
import { type DeadLetterNumbers, type MeteredTopic, meteredTopics, readDeadLetterNumbers } from './dead-letters.ts'
import type { Progress } from './progress.ts'

/** The servers and the policy that an audit compares. */
export interface AuditPorts {
  readonly clickhouse: ClickHouseClient
  /** A replica of each shard, where the rows of a cluster are; absent: `clickhouse` has them. */
  readonly shards?: readonly ClickHouseClient[]
  /** Resolves when every replica has all rows that any of its shard had when it was called. */
  readonly catchUp?: () => Promise<void>
  readonly kafka: KafkaOptions
  readonly servers: QuotaServers
  readonly policy: Policy
  readonly nowMs: () => number
  /** Waits between two readings of rows that may be in transit; a test does not wait. */
  readonly pause: () => Promise<void>
  /** Says what is compared now, and how much of all is done. */
  readonly tell?: Progress['tell']
}

/** Where a rollup and its raw rows are together. */
export const shardsOf = ({ clickhouse, shards = [clickhouse] }: AuditPorts): readonly ClickHouseClient[] => shards

/**
 * Compares the sequence numbers of every journal that was active in the span, less recorded gaps and dead letters.
 * Missing and repeated numbers are read again after `pause`, because blocks may be in transit.
 */
async function auditNumbers(
  client: ClickHouseClient,
  metered: MeteredTopic,
  readLetters: () => Promise<DeadLetterNumbers>,
  span: Span,
  pause: () => Promise<void>,
): Promise<readonly Discrepancy[]> {
  const look = async () => {
    const journals = await readJournalNumbers(client, metered, span)
    // After the rows: what became a dead letter in between is no hole.
    const letters = await readLetters()
    const known = [...(await readRecordedGaps(client, metered.topic)), ...letters.known]
    return numberDiscrepancies(journals, known, letters.places)
  }
  const first = await look()
  if (first.length === 0) return first
  await pause()
  return look()
}

/**
 * Compares rows with rollups, sequence numbers, Kafka and Redis over a span of time; quotas as they are now. Changes
 * nothing.
 */
export async function auditAll(ports: AuditPorts, span: Span) {
  const { clickhouse, kafka, nowMs, pause, tell = () => undefined, catchUp = async () => undefined } = ports
  /** Two for each topic, and one for the rollups and for quotas. */
  const stages = meteredTopics.length * 2 + 2
  let stage = 0
  const tellStage = (text: string, within = 0) => tell(text, (stage + within) / stages)
  const findings: Discrepancy[] = []
  await catchUp()
  for (const shard of shardsOf(ports)) {
    findings.push(...(await auditRollups(shard, span, nowMs(), { pause, tell: tellStage })).findings)
  }
  const missing: MissingRecords[] = []
  let offsets = 0
  for (const metered of meteredTopics) {
    stage += 1
    tellStage(`sequence numbers of ${metered.topic}`)
    const letters = () => readDeadLetterNumbers(kafka, metered.deadLetters)
    findings.push(...(await auditNumbers(clickhouse, metered, letters, span, pause)))
    stage += 1
    const how = { sinceMs: span.fromMs, tell: tellStage, catchUp }
    const found = await auditKafka(clickhouse, kafka, metered, letters, how)
    findings.push(...found.findings)
    missing.push(...found.missing)
    offsets += found.compared
  }
  stage += 1
  tellStage('quotas in Redis')
  const quotas = await auditQuotas(ports)
  findings.push(...quotas.findings)
  return { findings, missing, above: quotas.above, compared: { offsets, counts: quotas.compared } }
}

/** Everything that differs, with what a repair needs. */
export type AuditResult = Awaited<ReturnType<typeof auditAll>>
