import { type ShownDecision, shownColumns } from '@weir/api/decisions.ts'
import type { StoredDecision } from '@weir/contracts/decision-columns.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** The columns of a decision that every caller sees as they are stored. */
export const plainColumns = (row: StoredDecision) =>
  Object.fromEntries(shownColumns.map((name) => [name, row[name]])) as Pick<
    StoredDecision,
    (typeof shownColumns)[number]
  >

/**
 * A decision as the caller may know it. Callers who are limited to subjects see nothing of limits in shadow, and no
 * counts: which of them were theirs alone is only known with the policy of then, which the explanation has.
 */
export function shownDecision(row: StoredDecision, { isOwn }: Reach): ShownDecision {
  const { outcome, reason, mode, policy, retry_ms: retryMs, shadowed_by, limits } = row
  // Records of older processes say nothing of waiting.
  const isWaitKnown = outcome === 'deny' && (policy >= 0 || retryMs !== 0)
  const isHidden = isOwn && mode === 'shadow'
  return {
    ...plainColumns(row),
    ts: new Date(row.ts_ms).toISOString(),
    reason: isHidden ? 'ok' : reason,
    mode: isHidden ? 'enforce' : mode,
    denied_by: isOwn && outcome === 'allow' ? '' : row.denied_by,
    retry_ms: isWaitKnown ? retryMs : null,
    ...(isOwn ? {} : { shadowed_by, limits }),
  }
}
