import { type Limit, type PeriodUnit, partText, type ScopePart } from '../limits/limit.ts'
import type { ScopeValues } from '../limits/limit-store.ts'
import type { Discrepancy } from './discrepancy.ts'

/** The parts of a scope that a record holds; a quota counted by anything else cannot be summed from records. */
const recordedKinds = ['subject', 'key', 'route', 'method'] as const

/** A calendar quota whose counts can be summed from records. */
export interface SummableQuota {
  readonly limit: Limit
  readonly unit: PeriodUnit
}

/** A calendar quota whose counts cannot. */
export interface UnsummableQuota {
  readonly name: string
  readonly because: string
}

/** The calendar quotas of a policy. */
export interface Quotas {
  readonly summable: readonly SummableQuota[]
  readonly unsummable: readonly UnsummableQuota[]
}

const isRecorded = ({ kind }: ScopePart) => recordedKinds.some((known) => known === kind)

/** Returns the calendar quotas of a policy, without those of a minute: a minute later their counts are gone. */
export function quotasOf({ limits }: { readonly limits: ReadonlyMap<string, Limit> }): Quotas {
  const summable: SummableQuota[] = []
  const unsummable: UnsummableQuota[] = []
  for (const limit of limits.values()) {
    const { span, by, name } = limit
    if (span.kind !== 'period' || span.unit === 'minute') continue
    const unknown = by.filter((part) => !isRecorded(part)).map(partText)
    if (unknown.length === 0) summable.push({ limit, unit: span.unit })
    else unsummable.push({ name, because: `counts by ${unknown.join(' and ')}, which records do not contain` })
  }
  return { summable, unsummable }
}

/**
 * Units that decisions are known to have charged to one count of a quota. Key, route and method are empty unless the
 * quota is counted by them.
 */
export interface QuotaUse extends Pick<ScopeValues, 'subject' | 'keyId' | 'route' | 'method'> {
  /** Name of the limit. */
  readonly limit: string
  /** The topmost ancestor that the subject had in the last of these decisions; empty for none. */
  readonly root: string
  /** End of the period that they were charged in, in milliseconds since the epoch. */
  readonly endMs: number
  readonly units: number
}

/** Units that a reset took out of one count of a quota, as its entry in the audit has them. */
export interface ForgottenCount {
  /** Names the count: the hash of its key, which may hold an address. */
  readonly count: string
  /** End of the period that they were counted in, in milliseconds since the epoch. */
  readonly end_ms: number
  readonly units: number
}

/** What is known of the counts of quotas: the units that were used, and those of them that resets took out. */
export interface KnownUnits {
  readonly uses: readonly QuotaUse[]
  readonly forgotten: readonly ForgottenCount[]
}

/** A use with the Redis key that it is counted under. */
export interface QuotaFloor extends Omit<QuotaUse, 'root'> {
  readonly key: string
}

/** A count of a quota in Redis. */
export interface QuotaCount {
  /**
   * `left`: it is not below the floor; `raised`; `lowered`: no request has changed it since it was raised too high;
   * `other`: another period is counted; `over`: its period ended.
   */
  readonly outcome: 'left' | 'raised' | 'lowered' | 'other' | 'over'
  /** Units that were counted, in the period that ends at `endMs`; 0 and 0 for none. */
  readonly before: number
  readonly endMs: number
  readonly now: number
}

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
    const differs = (what: string, found: string, note: string): Discrepancy[] => [
      { check: 'quotas', where: key, expected: String(units), what, found, note },
    ]
    if (last.outcome === 'over') return []
    if (last.outcome === 'other') {
      const ends = new Date(last.endMs).toISOString()
      return differs(`period of ${limit}`, `another, that ends ${ends}`, 'zone or anchor were edited')
    }
    const used = String(last.before)
    if (last.before < units) return differs(`used of ${limit}`, used, 'Redis counts too little')
    const tooMany = Math.min(first.before, last.before) - unknown > units
    if (!tooMany || isLeased) return []
    return differs(`used of ${limit}`, used, 'Redis counts more than there are records')
  })
}
