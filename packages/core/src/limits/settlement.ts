import type { LimitState } from './decision.ts'
import type { Units } from './limit-store.ts'

/** How quantities are known: as somebody said, by what was seen of an answer, or as they were held. */
export type UnitsBasis = 'reported' | 'counted' | 'bound'

/** Says what a decision that was made with a reservation costs in the end. */
export interface Settlement {
  readonly subject: string
  /** The topmost of its tree when it was decided; absent for the subject itself. */
  readonly root?: string | undefined
  /** The id of the decision. */
  readonly id: string
  /** Units, a non-negative safe integer; absent for what was charged. */
  readonly cost?: number | undefined
  /** What it used of other units; each that is absent stays as it was held. */
  readonly units?: Units | undefined
  /** How `units` are known; absent where the caller reports them. */
  readonly basis?: UnitsBasis | undefined
  /** Labels of its usage, where they are not those of the decision. */
  readonly dims?: Readonly<Record<string, string>> | undefined
  /** It used nothing at all. */
  readonly isUnused?: boolean | undefined
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
  /** What was held, and what replaced it; absent where nothing was. */
  readonly held?: Readonly<Record<string, number>> | undefined
  readonly units?: Readonly<Record<string, number>> | undefined
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
  /** Nothing was done: `settleMax` is the most that it can be settled to, of the unit if that is not the cost. */
  | { readonly kind: 'too-much'; readonly settleMax: number; readonly unit?: string }
  /** It was settled to another cost, or to other units. */
  | { readonly kind: 'conflict'; readonly cost: number; readonly units?: Readonly<Record<string, number>> | undefined }
  /** Another process settled it a moment ago and has to write the record: after a while it counts as dead. */
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  /** Redis did not answer. What was done stands, and a repeat finds it. */
  | { readonly kind: 'unavailable' }

/** How a renewal ends. */
export type RenewResult =
  /** From now on it can be settled, and its slots last, up to `openMs`. */
  | { readonly kind: 'renewed'; readonly openMs: number }
  /** The subject has too many open decisions. */
  | { readonly kind: 'too-many' }
  | Extract<SettlementResult, { readonly kind: 'unknown' | 'forbidden' | 'unavailable' }>
