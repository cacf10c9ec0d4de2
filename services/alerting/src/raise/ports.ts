import type { AlertV1 } from '@weir/contracts/alert.v1.ts'

/** How a claim was found. */
export interface FoundClaim {
  /** `pending`: claimed before, by a process that did not live to publish. */
  readonly state: 'acquired' | 'pending' | 'done'
  /** Of a pending one, what its first claimant gave. */
  readonly stamp: string
}

export interface ClaimedKey {
  readonly key: string
  /** It expires so long after it was last changed. */
  readonly lifetimeMs: number
  /** Kept with the claim for whoever finds it pending; without blanks. */
  readonly stamp: string
}

/** Who raised which alert; one answer for all processes. */
export interface ClaimStore {
  /** Takes each claim that nobody has, in one round trip; in the order of the keys. */
  claim(claims: readonly ClaimedKey[]): Promise<FoundClaim[]>
  /** The alerts of these claims are published, or superseded: they are over until they expire. */
  finish(claims: readonly Omit<ClaimedKey, 'stamp'>[]): Promise<void>
}

/** What was raised before, as far as ClickHouse knows. */
export interface AlertHistory {
  /** The ids, of these alerts, that were raised. None where ClickHouse does not say so in time: an alert never waits for it. */
  raised(alerts: readonly AlertV1[]): Promise<ReadonlySet<string>>
  /** Keeps alerts that come too late to be sent. Rejects when they are not kept. */
  keepLate(alerts: readonly AlertV1[]): Promise<void>
}

export interface AlertTopic {
  /** Resolves when all are in Kafka on every in-sync replica. */
  publish(alerts: readonly AlertV1[]): Promise<void>
}
