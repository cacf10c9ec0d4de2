import type { AlertV1 } from '@weir/contracts/alert.v1.ts'

/** How a claim was found. `pending`: claimed before, by a process that did not live to publish. */
export type ClaimState = 'acquired' | 'pending' | 'done'

/** Who raised which alert; one answer for all processes. */
export interface ClaimStore {
  /** Takes each claim that nobody has, in one round trip; states in the order of the keys. */
  claim(claims: readonly { readonly key: string; readonly lifetimeMs: number }[]): Promise<ClaimState[]>
  /** The alerts of these claims are published, or superseded: they are over until they expire. */
  finish(keys: readonly string[]): Promise<void>
}

export interface AlertTopic {
  /** Resolves when the alert is in Kafka on every in-sync replica. */
  publish(alert: AlertV1): Promise<void>
}
