import type { PriceList } from '@weir/core/prices/price-list.ts'
import { type Policy, pricesOf, type Subject } from '@weir/policy/policy.ts'
import type { Ledger } from './close-month.ts'
import { policyOf } from './decisions/policy-facts.ts'

/** A subject that pays, with its price list. */
export interface BilledSubject {
  readonly subject: Subject
  readonly prices: PriceList
  /** When it was deleted from the policy; undefined while it is in it. */
  readonly deletedAtMs: number | undefined
}

function billedIn(policy: Policy | undefined, id: string, deletedAtMs: number | undefined): BilledSubject | undefined {
  const subject = policy?.subjects.get(id)
  const prices = policy === undefined || subject === undefined ? undefined : pricesOf(policy, subject)
  return subject === undefined || prices === undefined ? undefined : { subject, prices, deletedAtMs }
}

/**
 * Finds a subject with its price list: in the policy in force, or as they were just before the subject was deleted.
 * Undefined if it has no price list, or was never there as far as the history goes back.
 */
export async function findBilled(
  policy: Policy,
  id: string,
  { readFormerPolicy }: Pick<Ledger, 'readFormerPolicy'>,
): Promise<BilledSubject | undefined> {
  if (policy.subjects.get(id) !== undefined) return billedIn(policy, id, undefined)
  const former = await readFormerPolicy(id)
  return former === undefined ? undefined : billedIn(policyOf(former), id, former.deletedAtMs)
}
