import type { AlertV1 } from '@weir/contracts/alert.v1.ts'

/** The state in which a claim was found. */
export interface FoundClaim {
  /** `pending`: a process claimed it and died before it published. */
  readonly state: 'acquired' | 'pending' | 'done'
  /** The occurrence that the first claimant of a pending claim stored. */
  readonly occurrenceId: string
}

export interface ClaimedKey {
  readonly key: string
  /** The claim expires this long after its last change. */
  readonly lifetimeMs: number
  /** Stored with the claim for the process that finds it pending; without blanks. */
  readonly occurrenceId: string
}

/** Decides which process raises an alert; all processes share its answer. */
export interface ClaimStore {
  /** Acquires every free claim, in one round trip. Returns the states in the order of the keys. */
  claim(claims: readonly ClaimedKey[]): Promise<FoundClaim[]>
  /** Marks claims as done, because their alerts are published or superseded; they stay done until they expire. */
  finish(claims: readonly Omit<ClaimedKey, 'occurrenceId'>[]): Promise<void>
}

/** The alerts that were raised before, as far as ClickHouse knows. */
export interface AlertHistory {
  /**
   * Returns the ids of those alerts that were raised; none if ClickHouse does not answer in time, since an alert never
   * waits for it.
   */
  raised(alerts: readonly AlertV1[]): Promise<ReadonlySet<string>>
  /** Stores alerts that come too late to be sent. Rejects if they are not stored. */
  keepLate(alerts: readonly AlertV1[]): Promise<void>
}

export interface AlertTopic {
  /** Resolves when all are in Kafka on every in-sync replica. */
  publish(alerts: readonly AlertV1[]): Promise<void>
}
