/** The first and the longest pause of a loop that retries. */
export interface BackoffBounds {
  readonly firstMs: number
  readonly maxMs: number
}

/** More doublings than any loop here needs to reach its longest pause; a larger power would only lose precision. */
const doublingsMax = 30

/**
 * Returns the pause before the attempt that follows `failures` failed attempts in a row, in whole milliseconds. The
 * pause doubles with each failure up to `maxMs`, and its upper half is random, so that processes that failed together
 * do not return together.
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffBounds, random = Math.random): number {
  const doublings = Math.min(Math.max(0, failures - 1), doublingsMax)
  const wholeMs = Math.min(maxMs, firstMs * 2 ** doublings)
  return Math.round(wholeMs / 2 + (wholeMs / 2) * random())
}
