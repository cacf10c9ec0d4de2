import type { Finding } from './finding.ts'
import type { QuotaCount, QuotaFloor } from './quota.ts'

/** One count of a quota: what was used, and how it stood in Redis before and after that was summed. */
export interface QuotaLook {
  readonly floor: QuotaFloor
  readonly first: QuotaCount
  readonly last: QuotaCount
  /** Units of the subject of which nobody knows whether they were charged. */
  readonly unknown: number
  /** Processes take units of this quota beforehand, so more may be counted than is used. */
  readonly isLeased: boolean
}

/**
 * Where Redis counts other than what the records say. Requests go on meanwhile, so a count may be as much as it was at the end,
 * and as little as it was at the beginning; units that may or may not have been charged explain what is counted too much.
 */
export function quotaFindings(looks: readonly QuotaLook[]): Finding[] {
  return looks.flatMap(({ floor, first, last, unknown, isLeased }): Finding[] => {
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
