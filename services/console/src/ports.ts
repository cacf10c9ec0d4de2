import type {
  AlertFilter,
  FailedDelivery,
  findAlert,
  ListedAlert,
  listAlerts,
} from '@weir/clickhouse/delivery-queries.ts'
import type { OutcomeRow, UsageRow } from '@weir/clickhouse/usage-queries.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { PolicyMessage } from '@weir/contracts/policy.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { OutcomeQuestion, UsageQuestion } from '@weir/core/usage/question.ts'
import type { PolicyFault } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { EntityName, PolicyCheckpoint } from '@weir/policy-feed/policy-feed.ts'
import type { AskedLimits, LimitQuestion } from '@weir/redis/asked-limits.ts'
import type { ChangedLimits, LimitChange } from '@weir/redis/limit-admin.ts'
import type { AuditLog } from './audit-log.ts'

/** The policy as this process has read it from Kafka. */
export interface PolicyReplica {
  /** Undefined while nothing was read yet: Kafka is away, and there is no snapshot. */
  readonly state: PolicyState | undefined
  /**
   * The last change that `state` has or has left out, read at the same moment as `state`; undefined before the first.
   */
  readonly mark: PolicyCheckpoint | undefined
  /** What changes that were left out have written last: the topic is to have it again as `state` has it. */
  readonly stale: Iterable<EntityName>
  /** Whether `state` has taken over everything up to the offset before the deadline. */
  reached(offset: bigint, deadlineMs: number): Promise<boolean>
  /** Why a change that was reached does not fit, by its id in the audit. Undefined if it does, or was overtaken. */
  problemsOf(change: string): readonly PolicyFault[] | undefined
}

/** Counts of limits in Redis. Rejects when Redis does not answer. */
export type ChangeCounts = (asked: AskedLimits, question: LimitQuestion, change: LimitChange) => Promise<ChangedLimits>

/**
 * Reads alerts with their deliveries, and asks alerting to deliver. Each method rejects when its server does not
 * answer.
 */
export interface AlertAdmin {
  list(filter: AlertFilter, part: Parameters<typeof listAlerts>[2]): Promise<ListedAlert[]>
  find(id: string): ReturnType<typeof findAlert>
  listFailed(filter: AlertFilter, limit: number): Promise<FailedDelivery[]>
  /** Asks alerting to deliver once more; gives how many were asked for. Safe to repeat. */
  request(rows: readonly DeliveryV1[]): Promise<number>
  /** Sends an endpoint a test, and gives the alert's id. */
  sendTest(endpoint: string): Promise<string>
}

/** What the console works with. */
export interface Ports {
  /** Rejects when the rollups cannot be read. */
  readonly askUsage: (question: UsageQuestion) => Promise<UsageRow[]>
  /** Rejects when the rollup cannot be read. */
  readonly askOutcomes: (question: OutcomeQuestion) => Promise<OutcomeRow[]>
  /** How far the rows of one kind are complete; to be asked before them. Rejects when the marks cannot be read. */
  readonly askCompleteness: (rows: 'decisions' | 'outcomes') => Promise<Completeness>
  readonly alerts: AlertAdmin
  readonly policy: PolicyReplica
  /** Stores one change atomically, as one batch. Resolves to the offset to wait for; rejects with a WeirError. */
  readonly publish: (messages: readonly PolicyMessage[]) => Promise<bigint>
  readonly audit: AuditLog
  /** Undefined where no Redis is configured. */
  readonly changeCounts: ChangeCounts | undefined
  readonly clock: Clock
}
