import type { KafkaOptions } from '@weir/kafka/connect.ts'
import type { EntityChange, PolicyFault } from '@weir/policy/entities.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { EntityName } from './catch-up.ts'
import type { AuditRecord, Mark } from './gather-changes.ts'
import { LiveFeed } from './live-feed.ts'

export type { EntityName } from './catch-up.ts'
export type { AuditRecord, Mark } from './gather-changes.ts'

export interface PolicyFeedOptions extends KafkaOptions {
  /** Path of the copy on disk that a start without Kafka takes; empty for none. Each process has its own. */
  readonly snapshotPath: string
  /**
   * The policy of the file, for as long as the topic holds none; undefined where there is no file. Asked only when it is
   * needed: what it throws then fails `firstPolicy`.
   */
  readonly seed: () => Policy | undefined
  /** Gets every audit record of the topic in its order, but for those of overtaken changes. */
  readonly onAudit?: (record: AuditRecord) => void
  /** The topic was read anew, and may be another one: all of its audit records are told in one go after this. */
  readonly onAuditAnew?: () => void
  /** Given by tests only. */
  readonly topic?: string
  /** How long a start waits for Kafka; given by tests only. */
  readonly patienceMs?: number
}

/** What has just come into force. */
export interface PolicyNews {
  readonly policy: Policy
  /** `policy` is not the object that it was before. Otherwise only subjects and keys have changed. */
  readonly isReplaced: boolean
  /** Empty when the whole policy was read anew. */
  readonly changes: readonly EntityChange[]
  /** Subjects whose refusals are to be forgotten. */
  readonly resets: readonly string[]
}

export interface PolicyFeedStatus {
  /** Where the policy in force came from. */
  readonly source: 'none' | 'seed' | 'snapshot' | 'topic'
  /** What keeps the feed from following the topic; empty while it does. */
  readonly waitingFor: string
  /** Since Kafka last said that everything was read; Infinity for never. */
  readonly ageMs: number
  /** What of the topic or the snapshot is not in force, and why; undefined when all of it is. */
  readonly refused: string | undefined
}

/** Counts since the start, for metrics. */
export interface PolicyFeedCounters {
  readonly changes: number
  readonly refusedChanges: number
  readonly unreadableRecords: number
}

/** The policy of weir.policy.v1, held in memory and followed for as long as the process lives. */
export interface PolicyFeed {
  /** The policy in force; undefined while there is none. */
  readonly policy: Policy | undefined
  /** What the topic or the snapshot holds, the seed never; undefined while neither was read. Another object once it was read anew. */
  readonly state: PolicyState | undefined
  /** The last change that is in `state`, or was left out of it: what is planned on this state goes after it. */
  readonly mark: Mark | undefined
  /** What changes that were left out have written last: the next change writes them again as they are in `state`. */
  readonly stale: Iterable<EntityName>
  readonly status: PolicyFeedStatus
  readonly counters: PolicyFeedCounters
  /** Told of everything that comes into force after `firstPolicy`, in order. Listeners do not throw. */
  onChange(listener: (news: PolicyNews) => void): void
  /**
   * The topic's policy if Kafka answers within seconds, else the snapshot's, else the seed; otherwise it waits for the topic
   * as long as it takes. Rejects when the feed is closed, or the seed was needed and is wrong.
   */
  firstPolicy(): Promise<Policy>
  /** Whether everything up to this offset of the topic was taken over or left out before the deadline. */
  reached(offset: bigint, deadlineMs: number): Promise<boolean>
  /** Why a change that was reached was left out: others came before it. By its id in the audit; undefined for one in force. */
  problemsOf(change: string): readonly PolicyFault[] | undefined
  /** Writes the snapshot if it is behind. */
  close(): Promise<void>
}

/** Starts to follow the topic. Kafka may be away, and may go away and come back at any time. */
export const openPolicyFeed = (options: PolicyFeedOptions): PolicyFeed => new LiveFeed(options)
