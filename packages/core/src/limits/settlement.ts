import type { LimitState } from './decision.ts'

/** Says what a decision that was made with a reservation costs in the end. */
export interface Settlement {
  readonly subject: string
  /** The id of the decision. */
  readonly id: string
  /** Units, a non-negative safe integer. */
  readonly cost: number
  /**
   * The subject itself asks: it may settle only what it asked for itself, and to no more than was charged. Without it
   * the caller may settle for any subject.
   */
  readonly isOwn?: boolean
}

/** A decision whose cost was settled, now or before: every caller that asks gets the same. */
export interface Settled {
  readonly kind: 'settled'
  readonly cost: number
  /** What was charged when it was decided. */
  readonly chargedCost: number
  /** As it was handed in with the decision. */
  readonly context: string
  /** Limits whose counts were corrected, as that left them. */
  readonly limits: readonly LimitState[]
  /** Redis's clock when it was settled. */
  readonly settledAtUs: number
  /** The process that asks has to write the correction record, and then to confirm that. */
  readonly isRecordPending: boolean
}

/** How an attempt to settle a decision ends. */
export type SettlementResult =
  | Settled
  /** The subject has no such decision, none that can be settled, or none any more. */
  | { readonly kind: 'unknown' }
  /** The subject may not settle it, because it did not ask for it itself. */
  | { readonly kind: 'forbidden' }
  /** Nothing was done: `settleMax` is the most that it can be settled to. */
  | { readonly kind: 'too-much'; readonly settleMax: number }
  /** It was settled to another cost. */
  | { readonly kind: 'conflict'; readonly cost: number }
  /** Another process settled it a moment ago and has to write the record: after a while it counts as dead. */
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  /** Redis did not answer. What was done stands, and a repeat finds it. */
  | { readonly kind: 'unavailable' }
