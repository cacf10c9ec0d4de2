import { decisionColumns } from '@weir/contracts/decision-columns.ts'
import { reasons } from '@weir/core/limits/decision.ts'
import { isOfOneSubject } from '@weir/core/limits/limit.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { explainDecision } from '@weir/explain/explain-decision.ts'
import { type ChangedEntity, changedEntity, factsOf, policyOf } from '@weir/explain/policy-facts.ts'
import { priceLines } from '@weir/explain/price-lines.ts'
import type { RecordedDecision } from '@weir/explain/recorded-decision.ts'
import { isJsonObject, type JsonObject } from '@weir/policy/entities.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { PolicyAt } from '@weir/policy-changes/history-queries.ts'
import { historyBody, isHistoryKind } from '@weir/policy-changes/history-rows.ts'
import { hiddenLimitsOf } from '../alerts/own-alerts.ts'
import { iso } from '../usage/completeness.ts'
import type { DecisionRelated, DecisionRow } from './decision-queries.ts'
import { plainColumns } from './shown-decision.ts'

const noCorrection = decisionColumns.corrects.absent

/** Records of older processes have neither a wait nor an offset of the policy. */
function recordedOf(row: DecisionRow): RecordedDecision {
  const isOlder = row.policy < 0 && row.retry_ms === 0
  return {
    ...row,
    reason: reasons.find((one) => one === row.reason) ?? 'ok',
    retry_ms: isOlder || row.outcome === 'allow' ? undefined : row.retry_ms,
    correction: row.corrects === noCorrection ? undefined : { corrects: row.corrects, adjustment: row.adjustment },
  }
}

/** What a caller limited to subjects may know of a decision: no limit in shadow or above, no count others share. */
function ownRecord(
  record: RecordedDecision,
  hidden: readonly string[],
  policies: readonly Policy[],
  reach: Reach,
): RecordedDecision {
  const isOwnCount = (name: string) => {
    const known = policies.map(({ limits }) => limits.get(name)).find((limit) => limit !== undefined)
    return known !== undefined && isOfOneSubject(known.by)
  }
  const limits = record.limits
    .filter(({ name, at }) => !hidden.includes(name) && (at === '' || reach.coversNow([at])))
    .map((limit) => (isOwnCount(limit.name) ? limit : { ...limit, used: undefined, remaining: undefined, by: {} }))
  const shown: RecordedDecision = { ...record, limits, shadowed_by: '' }
  return record.mode === 'shadow' ? { ...shown, mode: 'enforce', reason: 'ok', denied_by: '' } : shown
}

/** Parts of the policy that a decision follows from. */
function namesOf(row: DecisionRow): readonly (readonly [kind: 'limit' | 'plan' | 'route' | 'subject', name: string])[] {
  return [
    ...row.limits.map(({ name }) => ['limit', name] as const),
    ['plan', row.plan],
    ['route', row.route],
    ['subject', row.subject],
    ...row.parents.map((name) => ['subject', name] as const),
  ]
}

function changesSince(row: DecisionRow, then: PolicyAt, now: PolicyState): readonly ChangedEntity[] {
  const bodyThen = (kind: string, name: string): JsonObject | undefined => {
    const found = then.entities.find((one) => one.kind === kind && one.name === name)
    const body: unknown = found === undefined ? undefined : JSON.parse(found.body)
    return isJsonObject(body) ? body : undefined
  }
  const bodyNow = (kind: 'limit' | 'plan' | 'route' | 'subject', name: string) => {
    const body = now.get(kind, name)?.body
    return body === undefined || !isHistoryKind(kind) ? body : historyBody(kind, body)
  }
  return namesOf(row).flatMap(([kind, name]) => {
    const changed = changedEntity(kind, name, bodyThen(kind, name), bodyNow(kind, name))
    return changed === undefined ? [] : [changed]
  })
}

/** What an explanation is made of. */
interface Known {
  readonly row: DecisionRow
  readonly related: DecisionRelated
  readonly then: PolicyAt | undefined
  /** Undefined until the policy was read. */
  readonly now: PolicyState | undefined
}

/** Names the limits whose part in a decision a caller who is limited to subjects does not see. */
export const hiddenIn = (then: Policy | undefined, now: Policy | undefined, reach: Reach): readonly string[] =>
  reach.isOwn ? [...new Set([...hiddenLimitsOf(now, reach), ...hiddenLimitsOf(then, reach)])] : []

/** Answers why a decision came out as it did, as far as the caller may know it. */
export function explained({ row, related, then, now }: Known, reach: Reach) {
  const policy = then === undefined ? undefined : policyOf(then)
  const policies = [policy, now?.policy].filter((one) => one !== undefined)
  const whole = recordedOf(row)
  const record = reach.isOwn ? ownRecord(whole, hiddenIn(policy, now?.policy, reach), policies, reach) : whole
  const facts = policy === undefined ? undefined : factsOf(policy, row)
  const explanation = explainDecision(record, facts)
  const isExact = then?.isNamed === true && explanation.limits.every((limit) => limit.algorithm !== undefined)
  // Other plans, and who changed what, are not for one customer's eyes.
  const remedies = explanation.would_have_allowed.filter(({ how }) => !reach.isOwn || how !== 'plan')
  const known = then === undefined ? undefined : { change: then.change.id, at: iso(then.change.atMs) }
  const sinceChanged = then === undefined || now === undefined ? [] : changesSince(row, then, now)
  const { outcome, corrections, alerts, blockedBy } = related
  // What settled it has what it used, and the model that was priced.
  const settled = corrections.find(({ units }) => Object.keys(units ?? {}).length > 0) ?? row
  return {
    ...plainColumns(row),
    ts: iso(row.ts_ms),
    reason: record.reason,
    mode: record.mode,
    denied_by: record.denied_by,
    shadowed_by: record.shadowed_by,
    retry_ms: record.retry_ms ?? null,
    ...explanation,
    would_have_allowed: remedies,
    blocked_by: blockedBy === undefined ? null : { id: blockedBy.id, ts: iso(blockedBy.ts_ms) },
    prices:
      reach.isOwn || policy === undefined
        ? []
        : priceLines(policy, { ...row, dims: settled.dims ?? {}, units: settled.units ?? {} }),
    policy: reach.isOwn
      ? null
      : { offset: row.policy < 0 ? null : row.policy, exact: isExact, ...known, since_changed: sinceChanged },
    outcome_record: outcome ?? null,
    corrects: record.correction === undefined ? null : record.correction,
    corrections,
    alerts,
  }
}
