/** Which promise was looked at. */
export type Check = 'rollups' | 'numbers' | 'kafka' | 'quotas'

/** One thing that is not as it should be, in the names of the wire. Keys are only added. */
export interface Finding {
  readonly check: Check
  /** What differs: `usage_15m.cost`, `missing records`. */
  readonly what: string
  /** Where: the hour, the journal and partition, the offsets, the Redis key. */
  readonly where: string
  readonly expected: string
  readonly found: string
  /** For people: how it may have come about, which rows they are. Empty for nothing to say. */
  readonly note: string
}

/** `2026-11-20 10:00`: how findings name an hour. */
export const hourText = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
