/** Credentials in one generation, about 150 bytes each; two are kept. */
const generationMax = 25_000
/** A generation is at least so young, or full. */
const generationMs = 300_000

/** Remembers which credentials were good in the last minutes, by their fingerprints: the latest 25,000 at least. */
export interface RecentlyGood {
  add(fingerprint: string): void
  has(fingerprint: string): boolean
}

/** Two generations instead of a list in order of use: nothing moves when a key is used again, which is what keys mostly are. */
export function createRecentlyGood(elapsedMs: () => number): RecentlyGood {
  let current = new Set<string>()
  let previous = current
  let begun = elapsedMs()
  return {
    add(fingerprint) {
      if (current.has(fingerprint)) return
      const now = elapsedMs()
      if (current.size >= generationMax || now - begun >= generationMs) {
        previous = current
        current = new Set()
        begun = now
      }
      current.add(fingerprint)
    },
    has: (fingerprint) => current.has(fingerprint) || previous.has(fingerprint),
  }
}
