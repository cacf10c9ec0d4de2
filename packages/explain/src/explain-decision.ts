import type { Explanation } from '@weir/api/decisions.ts'
import { definedFields } from '@weir/core/defined-fields.ts'
import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import { blockMsMaxOf } from '@weir/core/limits/exceeding.ts'
import {
  isCountedRefusal,
  isGuess,
  type JudgedLimit,
  judgeLimits,
  type PolicyFacts,
  type RecordedDecision,
} from './recorded-decision.ts'
import { summaryOf } from './summary.ts'
import { wouldHaveAllowed } from './would-have-allowed.ts'

/** Why a decision came out as it did. */
type OwnExplanation = Pick<Explanation, 'summary' | 'limits' | 'allowed_at' | 'would_have_allowed'>

const iso = (ms: number) => new Date(ms).toISOString()

/** Redis decides by its own clock, and the record has the ingress's: the two may be this far apart. */
const skewMsMax = 1_000
/** In every time zone of today a calendar period begins with a full minute. */
const minuteMs = 60_000

/**
 * Returns when all of a limit is unused: of a fixed window or a period its very end, which the clocks of a record
 * miss by their difference. A block ends where it ends.
 */
function resetAtMs({ met, remaining, reset_ms: resetMs }: JudgedLimit, tsMs: number): number {
  const recordedMs = tsMs + resetMs
  if (
    met === undefined ||
    !algorithmFacts[met.limit.algorithm].resetsAtOnce ||
    (remaining === 0 && blockMsMaxOf(met.limit) > 0)
  )
    return recordedMs
  const stepMs = met.limit.span.kind === 'window' ? met.limit.span.ms : minuteMs
  const endMs = Math.round(recordedMs / stepMs) * stepMs
  return Math.abs(endMs - recordedMs) <= Math.min(skewMsMax, stepMs / 4) ? endMs : recordedMs
}

/** The settings of a limit that the policy of then had. */
function settingsOf({ met }: JudgedLimit) {
  const { algorithm, mode, unit, currency } = met?.limit ?? {}
  return definedFields({ algorithm, mode, unit, currency })
}

/**
 * Explains a decision from its record and the policy that it was made under, undefined where that is not known. What it
 * says would have admitted the request does so in the script, for every algorithm; tests hold the two together.
 */
export function explainDecision(decision: RecordedDecision, policy: PolicyFacts | undefined): OwnExplanation {
  const { ts_ms: tsMs, reason, retry_ms: retryMs = 0 } = decision
  const judged = judgeLimits(decision, policy)
  const helps = isCountedRefusal(decision) && reason !== 'cost_exceeds_limit' && retryMs > 0 && !isGuess(judged)
  return {
    summary: summaryOf(decision, judged, policy),
    limits: judged.map((limit) => ({
      name: limit.name,
      because: limit.met?.because ?? [],
      ...settingsOf(limit),
      size: limit.size,
      used: limit.used ?? null,
      remaining: limit.remaining ?? null,
      needed: limit.needed,
      refused: limit.refused,
      by: limit.by,
      reset_at: iso(resetAtMs(limit, tsMs)),
    })),
    allowed_at: helps ? iso(tsMs + retryMs) : null,
    would_have_allowed: wouldHaveAllowed(decision, judged, policy),
  }
}
