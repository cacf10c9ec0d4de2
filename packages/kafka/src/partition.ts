const multiplier = 0x5bd1e995
const seed = 0x9747b28c

/**
 * Java's murmur2 as Kafka's own clients hash keys, over the key's UTF-8 bytes. Every producer of a topic must agree on it, or a
 * subject's records lose their order.
 */
export function murmur2(key: Buffer): number {
  const length = key.length
  let hash = seed ^ length
  let at = 0
  for (; at + 4 <= length; at += 4) {
    let word = (key[at] ?? 0) | ((key[at + 1] ?? 0) << 8) | ((key[at + 2] ?? 0) << 16) | ((key[at + 3] ?? 0) << 24)
    word = Math.imul(word, multiplier)
    word ^= word >>> 24
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier)
  }
  const rest = length - at
  if (rest === 3) hash ^= (key[at + 2] ?? 0) << 16
  if (rest >= 2) hash ^= (key[at + 1] ?? 0) << 8
  if (rest >= 1) hash = Math.imul(hash ^ (key[at] ?? 0), multiplier)
  hash ^= hash >>> 13
  hash = Math.imul(hash, multiplier)
  return hash ^ (hash >>> 15)
}

/** Long enough for every subject that is not hostile; longer keys get a buffer of their own. */
const scratch = Buffer.allocUnsafe(1_024)

/** The partition of a key among `count`, as Kafka's Java client chooses it. */
export function partitionOf(key: Buffer | string, count: number): number {
  if (typeof key !== 'string') return (murmur2(key) & 0x7fffffff) % count
  // A UTF-16 unit is at most three bytes of UTF-8.
  const bytes = key.length * 3 <= scratch.length ? scratch.subarray(0, scratch.write(key)) : Buffer.from(key)
  return (murmur2(bytes) & 0x7fffffff) % count
}
