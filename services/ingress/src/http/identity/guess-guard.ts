import { LRUCache } from 'lru-cache'

/** A program with a key that was revoked comes here too; it may retry every second and not shut its neighbours out. */
const wrongPerWindowMax = 100
const windowMs = 60_000
/** About 10 MB. Beyond, the addresses forgotten are those that guessed longest ago. */
const addressesMax = 50_000

/** Counts wrong credentials by address, so that keys cannot be guessed quickly from anywhere. Of this process only. */
export interface GuessGuard {
  /** Whether nobody at all is shut out, as is nearly always so. Then no address needs to be looked up. */
  readonly isQuiet: boolean
  /** How long no new credential of this address is looked at; 0 when it may try. */
  shutOutMs(address: string): number
  countWrong(address: string): void
}

/** `elapsedMs` never goes back. */
export function createGuessGuard(elapsedMs: () => number): GuessGuard {
  const counts = new LRUCache<string, { since: number; wrong: number }>({ max: addressesMax })
  let shutUntil = 0
  return {
    get isQuiet() {
      return shutUntil === 0
    },
    shutOutMs(address) {
      const now = elapsedMs()
      if (now >= shutUntil) {
        shutUntil = 0
        return 0
      }
      const count = counts.get(address)
      if (count === undefined || count.wrong < wrongPerWindowMax) return 0
      return Math.max(0, Math.ceil(count.since + windowMs - now))
    },
    countWrong(address) {
      const now = elapsedMs()
      const count = counts.get(address)
      if (count === undefined || now >= count.since + windowMs) {
        counts.set(address, { since: now, wrong: 1 })
        return
      }
      count.wrong += 1
      if (count.wrong >= wrongPerWindowMax) shutUntil = Math.max(shutUntil, count.since + windowMs)
    },
  }
}
