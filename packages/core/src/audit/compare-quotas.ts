import type { Discrepancy } from './discrepancy.ts'
import type { QuotaCount, QuotaFloor } from './quota.ts'

/** One count of a quota: the units that were used, and the count in Redis before and after they were summed. */
export interface QuotaReading {
  readonly floor: QuotaFloor
  readonly first: QuotaCount
  readonly last: QuotaCount
  /** Units of the subject that may or may not have been charged. */
  readonly unknown: number
  /** Processes take units of this quota beforehand, so more may be counted than is used. */
  readonly isLeased: boolean
}

/**
 * Returns where Redis counts something else than the records say. Requests go on meanwhile, so a count may be as much
 * as it was at the end, and as little as it was at the beginning; units that may or may not have been charged explain a
 * count that is too high.
 */
export function quotaDiscrepancies(looks: readonly QuotaReading[]): Discrepancy[] {
  return looks.flatMap(({ floor, first, last, unknown, isLeased }): Discrepancy[] => {
    const { key, units, limit } = floor
    const common = { check: 'quotas', where: key, expected: String(units) } as const
    if (last.outcome === 'over') return []
    if (last.outcome === 'other') {
      const ends = new Date(last.endMs).toISOString()
      return [
        {
          ...common,
          what: `period of ${limit}`,
          found: `another, that ends ${ends}`,
          note: 'zone or anchor were edited',
        },
      ]
    }
    if (last.before < units) {
      return [{ ...common, what: `used of ${limit}`, found: String(last.before), note: 'Redis counts too little' }]
    }
    const tooMany = Math.min(first.before, last.before) - unknown > units
    if (!tooMany || isLeased) return []
    const note = 'Redis counts more than there are records'
    return [{ ...common, what: `used of ${limit}`, found: String(last.before), note }]
  })
}
