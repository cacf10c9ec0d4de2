import type { QuotaFloor, QuotaUse, SummableQuota } from '@weir/core/audit/quota.ts'
import { limitKey } from './keys.ts'

/** The uses with the keys that they are counted under. A use of a limit that is not among the quotas is left out. */
export function quotaFloors(uses: readonly QuotaUse[], quotas: readonly SummableQuota[]): QuotaFloor[] {
  const limits = new Map(quotas.map(({ limit }) => [limit.name, limit]))
  return uses.flatMap((use) => {
    const limit = limits.get(use.limit)
    return limit === undefined ? [] : [{ ...use, key: limitKey(limit, { ...use, ip: '' }) }]
  })
}
