/** Which promise was checked. */
export type Check = 'rollups' | 'numbers' | 'kafka' | 'quotas'

/** One difference between what is stored and what should be, in the names of the wire. Keys are only added. */
export interface Discrepancy {
  readonly check: Check
  /** What differs: `usage_15m.cost`, `missing records`. */
  readonly what: string
  /** Where: the hour, the journal and partition, the offsets, the Redis key. */
  readonly where: string
  readonly expected: string
  readonly found: string
  /** For people: a possible cause, or which rows differ. May be empty. */
  readonly note: string
}

/** `2026-11-20 10:00`: how discrepancies name an hour. */
export const hourText = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
