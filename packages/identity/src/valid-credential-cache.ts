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
  return {
    add(fingerprint: string): void {
      if (current.has(fingerprint)) return
      const now = elapsedMs()
      if (current.size >= generationMax || now - begun >= generationMs) {
        previous = current
        current = new Set()
        begun = now
      }
      current.add(fingerprint)
    },
    has: (fingerprint: string): boolean => current.has(fingerprint) || previous.has(fingerprint),
  }
}
