import type { Algorithm, Limit } from '@weir/core/limits/limit.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'

/** Two cells are weighted by whole numbers below 2^53, window in ms × units: see lua/algorithms/sliding-window.lua. */
const slidingWindowMsMax = 86_400_000
/** The log keeps 8 bytes for every unit: 800 kB a count, and a change of size rewrites them in one step of some ms. */
export const slidingLogSizeMax = 100_000
/** The bucket's time is a fraction whose denominator is the size: 32 bits, with products below 2^53. */
const tokenBucketUnitsMax = 90_000_000

const dayMs = 86_400_000
/** The longest `window`: an empty bucket must be full again within it. */
const windowMsMax = 366 * dayMs
const inDays = (ms: number) => `${ms / dayMs}d`

/**
 * Whether the limit is one that its algorithm decides exactly; adds a problem with the reason if it is not. `fields`
 * are what was written of it; what is wrong by its default is reported at `at`.
 */
export function isWithinBounds(reader: PolicyReader, at: SourcePosition, fields: Fields, limit: Limit): boolean {
  const refuse: Refuse = (key, message) => {
    const field = fields.get(key)
    if (field === undefined) reader.problemAtKey(at, `${key}: ${message}`)
    else reader.problem(field, message)
    return false
  }
  const { algorithm, size, span, lease } = limit
  // Nobody leases from what admits nothing; a subject's own size may be 0.
  if (lease > size && size > 0)
    return refuse('lease', `must not exceed the size, ${size}: a process cannot hold more units than the limit has`)
  return span.kind === 'period' || bounds[algorithm](limit, span.ms, refuse)
}

type Refuse = (key: string, message: string) => false

/** The bounds of each algorithm for limits with a window. */
const bounds: Readonly<Record<Algorithm, (limit: Limit, windowMs: number, refuse: Refuse) => boolean>> = {
  fixed_window: () => true,
  concurrency: () => true,
  sliding_window(_, windowMs, refuse) {
    if (windowMs <= slidingWindowMsMax) return true
    const reason = 'longer windows cannot be counted exactly'
    return refuse('window', `a sliding_window can be at most ${inDays(slidingWindowMsMax)} long: ${reason}`)
  },
  sliding_log({ size }, _, refuse) {
    if (size <= slidingLogSizeMax) return true
    return refuse('size', `a sliding_log can have at most ${slidingLogSizeMax} units: it stores the time of each unit`)
  },
  token_bucket({ size, capacity }, windowMs, refuse) {
    const reason = 'larger sizes cannot be counted exactly'
    if (size > tokenBucketUnitsMax) {
      return refuse('size', `a token_bucket can have a size of at most ${tokenBucketUnitsMax}: ${reason}`)
    }
    if (capacity > tokenBucketUnitsMax) {
      return refuse('burst', `a token_bucket can have a burst of at most ${tokenBucketUnitsMax}: ${reason}`)
    }
    if (BigInt(capacity) * BigInt(windowMs) > BigInt(size) * BigInt(windowMsMax)) {
      const most = Math.floor(Number((BigInt(size) * BigInt(windowMsMax)) / BigInt(windowMs)))
      return refuse(
        'burst',
        `must be at most ${most}: an empty bucket must be full again within ${inDays(windowMsMax)}`,
      )
    }
    return true
  },
}
