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
  let blockedUntil = 0
  return {
    /** Whether no address is blocked, as is nearly always so. Then no address needs to be looked up. */
    get isQuiet() {
      return blockedUntil === 0
    },
    /** How long no new credential of this address is looked up; 0 when it may try. */
    blockedMs(address: string): number {
      const now = elapsedMs()
      if (now >= blockedUntil) {
        blockedUntil = 0
        return 0
      }
      const count = counts.get(address)
      if (count === undefined || count.wrong < wrongPerWindowMax) return 0
      return Math.max(0, Math.ceil(count.since + windowMs - now))
    },
    countWrong(address: string): void {
      const now = elapsedMs()
      const count = counts.get(address)
      if (count === undefined || now >= count.since + windowMs) {
        counts.set(address, { since: now, wrong: 1 })
        return
      }
      count.wrong += 1
      if (count.wrong >= wrongPerWindowMax) blockedUntil = Math.max(blockedUntil, count.since + windowMs)
    },
  }
}

/** Credentials in one generation, about 150 bytes each; two are kept. */
const generationMax = 25_000
/** A generation is replaced at this age, or when it is full. */
const generationMs = 300_000

/**
 * Remembers which credentials were valid in the last minutes, by their fingerprints: the latest 25,000 at least. It has
 * two generations instead of a list in order of use, so that a key that is used again moves nothing.
 */
export function createValidCredentialCache(elapsedMs: () => number) {
  let current = new Set<string>()
  let previous = current
  let begun = elapsedMs()
  const replaceIfOver = () => {
    const now = elapsedMs()
    if (current.size < generationMax && now - begun < generationMs) return
    previous = current
    current = new Set()
    begun = now
  }
  return {
    add(fingerprint: string): void {
      // Without a look at the clock, which takes longer than all else here.
      if (current.has(fingerprint)) return
      replaceIfOver()
      current.add(fingerprint)
    },
    /** Asked while some address is blocked: from then on those age that are no longer used, also without new ones. */
    has(fingerprint: string): boolean {
      replaceIfOver()
      return current.has(fingerprint) || previous.has(fingerprint)
    },
  }
}
