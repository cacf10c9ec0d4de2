import type { ShownDecision } from '@weir/api/decisions.ts'
import type { DecisionRow } from '@weir/clickhouse/decision-queries.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** What a list and a stream show of a decision. */
export type ShownColumns = Omit<DecisionRow, 'corrects' | 'adjustment'>

/**
 * A decision as the caller may know it. Callers who are limited to subjects see nothing of limits in shadow, and no
 * counts: which of them were theirs alone is only known with the policy of then, which the explanation has.
 */
export function shownDecision(row: ShownColumns, { isOwn }: Reach): ShownDecision {
  const { id, ts_ms: tsMs, subject, key_id, plan, route, method, cost, count, outcome, charged, ip } = row
  // Records of older processes say nothing of waiting.
  const isWaitKnown = outcome === 'deny' && (row.policy >= 0 || row.retry_ms !== 0)
  const isHidden = isOwn && row.mode === 'shadow'
  return {
    id,
    ts: new Date(tsMs).toISOString(),
    subject,
    key_id,
    plan,
    route,
    method,
    cost,
    count,
    outcome,
    reason: isHidden ? 'ok' : row.reason,
    mode: isHidden ? 'enforce' : row.mode,
    charged,
    denied_by: isOwn && outcome === 'allow' ? '' : row.denied_by,
    ip,
    retry_ms: isWaitKnown ? row.retry_ms : null,
    ...(isOwn ? {} : { shadowed_by: row.shadowed_by, limits: row.limits }),
  }
}
