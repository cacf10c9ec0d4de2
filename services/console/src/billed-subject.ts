import type { PolicyAt } from '@weir/clickhouse/policy-history.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import { type Policy, pricesOf, type Subject } from '@weir/policy/policy.ts'
import { policyOf } from './decisions/policy-facts.ts'

/** A policy of before, with a subject that was deleted from it. */
export interface FormerPolicy {
  readonly deletedAtMs: number
  readonly entities: PolicyAt['entities']
}

/** What the history has of subjects. */
export interface PolicyPast {
  /** The policy just before a subject was deleted; undefined where the history has no deletion of it. */
  readonly readFormerPolicy: (subject: string) => Promise<FormerPolicy | undefined>
  /** The policies that a subject had in a period, the newest first; none where the history does not go back so far. */
  readonly readPoliciesIn: (subject: string, period: Period) => AsyncIterable<Pick<PolicyAt, 'entities'>>
  /** Whether it has this change, and so all before it. */
  readonly hasChange: (id: string) => Promise<boolean>
}

/** A subject, with the price list that it has or had last. */
export interface BilledSubject {
  readonly subject: Subject
  readonly prices: PriceList | undefined
  /** When it was deleted from the policy; undefined while it is in it. */
  readonly deletedAtMs: number | undefined
}

function billedIn(policy: Policy | undefined, id: string, deletedAtMs: number | undefined): BilledSubject | undefined {
  const subject = policy?.subjects.get(id)
  if (policy === undefined || subject === undefined) return undefined
  return { subject, prices: pricesOf(policy, subject), deletedAtMs }
}

/**
 * Finds a subject with its price list: in the policy in force, or as they were just before the subject was deleted.
 * Undefined if it was never there as far as the history goes back.
 */
export async function findBilled(
  policy: Policy,
  id: string,
  { readFormerPolicy }: Pick<PolicyPast, 'readFormerPolicy'>,
): Promise<BilledSubject | undefined> {
  if (policy.subjects.get(id) !== undefined) return billedIn(policy, id, undefined)
  const former = await readFormerPolicy(id)
  return former === undefined ? undefined : billedIn(policyOf(former), id, former.deletedAtMs)
}

/**
 * Returns the price list that counts for a period: the last one that the subject had in it. Undefined if it had none;
 * `unknown` where the history does not go back to the end of the period, or has what this version cannot read.
 */
export async function priceListIn(
  { readPoliciesIn }: Pick<PolicyPast, 'readPoliciesIn'>,
  id: string,
  period: Period,
): Promise<PriceList | 'unknown' | undefined> {
  let isKnown = false
  for await (const then of readPoliciesIn(id, period)) {
    const policy = policyOf(then)
    if (policy === undefined) return 'unknown'
    const prices = billedIn(policy, id, undefined)?.prices
    if (prices !== undefined) return prices
    isKnown = true
  }
  return isKnown ? undefined : 'unknown'
}
