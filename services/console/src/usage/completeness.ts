import type { Gap } from '@weir/clickhouse/mark-queries.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { Reach } from '@weir/core/usage/reach.ts'

/** A time as answers have it. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** How far an answer is complete, as the caller may know it. */
export const shownCompleteness = ({ completeThroughMs, silent }: Completeness, { isOwn }: Reach) => ({
  complete_through: completeThroughMs === undefined ? null : iso(completeThroughMs),
  silent: silent.map(({ journal, sinceMs }) => ({ ...(isOwn ? {} : { journal }), since: iso(sinceMs) })),
})

/** The gaps of an answer, as the caller may know them: how many decisions of all subjects are missing is hidden. */
export const shownGaps = (found: readonly Gap[], { isOwn }: Reach) =>
  found.map(({ cause, partition, count, fromMs, toMs }) => ({
    ...(isOwn ? { cause } : { cause, partition, count }),
    from: fromMs === 0 ? null : iso(fromMs),
    to: toMs === 0 ? null : iso(toMs),
  }))
