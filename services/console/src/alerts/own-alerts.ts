import type { AlertV1 } from '@weir/contracts/alert.v1.ts'
import { describeAlert } from '@weir/contracts/describe-alert.ts'
import { alertTypes } from '@weir/core/alerts/alert-types.ts'
import { isOfOneSubject } from '@weir/core/limits/limit.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '@weir/policy/entities.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { isHiddenFrom } from '@weir/policy/shown-limits.ts'

type ListedFields = Pick<AlertV1, 'id' | 'subject' | 'time'> & { readonly type: string }

/** Names the limits whose alerts a caller who is limited to subjects does not see: those in shadow for one of them. */
export function hiddenLimitsOf(policy: Policy | undefined, { subjects = [] }: Reach): readonly string[] {
  if (policy === undefined) return []
  // Also without a subject: what is in shadow for all.
  const asked = subjects.length === 0 ? [''] : subjects
  return [...policy.limits.keys()].filter((name) => asked.some((subject) => isHiddenFrom(policy, subject, name)))
}

/**
 * What an alert says, for a caller who is limited to subjects: `used`, `percent` and `runs_out` of a limit whose counts
 * others share, or which is not there any more, are null.
 */
export function ownData(policy: Policy | undefined, data: JsonObject): JsonObject {
  if (!isJsonObject(data) || typeof data.limit !== 'string') return data
  const limit = policy?.limits.get(data.limit)
  if (limit !== undefined && isOfOneSubject(limit.by)) return data
  const hidden = ['used', 'percent', 'runs_out'].filter((name) => Object.hasOwn(data, name))
  return { ...data, ...Object.fromEntries(hidden.map((name) => [name, null])) }
}

/** An alert's sentence, as mail says it; of one from a newer Weir its type, and no share that `shown` hides. */
export function summaryOf({ type, ...alert }: ListedFields, data: JsonValue, shown: JsonValue): string {
  if (!alertTypes.some((known) => known === type)) return `${alert.subject}: ${type}`
  if (isJsonObject(shown) && shown.percent === null) {
    return `A threshold of the limit ${shown.limit} ${type === 'weir.quota.resolved' ? 'is over' : 'was reached'}`
  }
  return describeAlert({ ...alert, type, data } as AlertV1).title
}
