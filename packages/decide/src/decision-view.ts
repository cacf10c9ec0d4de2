import type { RateBook } from '@weir/core/prices/rate-book.ts'
import type { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { ManualBlocks } from './limits/manual-blocks.ts'

/** What a decision needs of the policy in force. */
export interface DecisionView {
  readonly policy: Policy
  /** Offset in `weir.policy.v1` of the last change that was taken over, also one of subjects alone; -1 for unknown. */
  readonly offset: () => number
  readonly manualBlocks: ManualBlocks
  /** Whether a limit counts requests in flight. */
  readonly hasSlots: boolean
  /** What requests cost in money; undefined where the policy has no rate card. */
  readonly rates: RateBook | undefined
  readonly resolveLimits: ReturnType<typeof createLimitResolver>
  /** The same for a caller whose address is not known: limits by address do not apply. */
  readonly resolveWithoutAddress: ReturnType<typeof createLimitResolver>
}

/** The policy in force: `view` is read once per request. */
export interface LiveView {
  readonly view: DecisionView
  /** Whether requests are to be denied, because it is not known any more whether this is the policy in force. */
  readonly isStale: () => boolean
}
