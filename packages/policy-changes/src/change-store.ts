import type { PolicyMessage } from '@weir/contracts/policy.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import type { AuditLog } from './audit-log.ts'
import type { ChangeFound } from './change-queries.ts'

/** The policy as this process has read it from Kafka. `state` and its last change, `checkpoint`, belong together. */
export type PolicyReplica = Pick<PolicyFeed, 'state' | 'checkpoint' | 'stale' | 'reached' | 'problemsOf'>

/** Where changes of the policy are stored, and which there were. */
export interface ChangeSource {
  /** Stores one change atomically, as one batch. Resolves to the offset to wait for; rejects with a WeirError. */
  readonly publish: (messages: readonly PolicyMessage[]) => Promise<bigint>
  readonly audit: AuditLog
  /** A change has moved these subjects to another tree, where their counts begin from scratch. */
  readonly onMoved?: ((subjects: readonly string[]) => void) | undefined
  /** Reads one change from the policy's history. Rejects when ClickHouse does not answer. */
  readonly findChange: (by: { readonly id: string; readonly entitiesMax: number }) => Promise<ChangeFound | undefined>
}

/** The policy in force, and where its changes go. */
export interface ChangeStore {
  readonly policy: PolicyReplica
  readonly changes: ChangeSource
  readonly clock: Clock
}
