import { LRUCache } from 'lru-cache'

/** A program with a revoked key is throttled too; it may retry every second without blocking its neighbours. */
const wrongPerWindowMax = 100
const windowMs = 60_000
/** About 10 MB. Beyond, the addresses that failed longest ago are forgotten. */
const addressesMax = 50_000

/**
 * Limits wrong credentials by address, so that keys cannot be guessed quickly from anywhere. It counts those of this
 * process. `elapsedMs` never goes back.
 */
export function createAuthFailureThrottle(elapsedMs: () => number) {
  const counts = new LRUCache<string, { since: number; wrong: number }>({ max: addressesMax })
  /**
   * Counts a wrong credential. Returns how long further ones of this address are refused with 429, because there were
   * too many before it; else 0. Right ones are not asked about: they may share an address with those that guess.
   */
  return function countWrong(address: string): number {
    const now = elapsedMs()
    const count = counts.get(address)
    if (count === undefined || now >= count.since + windowMs) {
      counts.set(address, { since: now, wrong: 1 })
      return 0
    }
    if (count.wrong >= wrongPerWindowMax) return Math.ceil(count.since + windowMs - now)
    count.wrong += 1
    return 0
  }
}
