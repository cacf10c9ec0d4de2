const multiplier = 0x5bd1e995
const seed = 0x9747b28c

/**
 * Java's murmur2 as Kafka's own clients hash keys, over the first `length` bytes of the key. Every producer of a topic
 * must agree on it, or a subject's records lose their order.
 */
function murmur2(key: Buffer, length = key.length): number {
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

/** Holds the keys' bytes in turn; a longer key gets a buffer of its own. */
const scratch = Buffer.allocUnsafe(1_024)

/** The bytes of a key that is plain ASCII, as nearly all are, without a call out of JavaScript; -1 if it is not. */
function asciiInto(target: Buffer, key: string): number {
  const length = key.length
  if (length > target.length) return -1
  for (let at = 0; at < length; at += 1) {
    const unit = key.charCodeAt(at)
    if (unit > 0x7f) return -1
    target[at] = unit
  }
  return length
}

/** The partition of a key among `count`, as Kafka's Java client chooses it. */
export function partitionOf(key: Buffer | string, count: number): number {
  if (typeof key !== 'string') return (murmur2(key) & 0x7fffffff) % count
  const length = asciiInto(scratch, key)
  const hash = length >= 0 ? murmur2(scratch, length) : murmur2(Buffer.from(key))
  return (hash & 0x7fffffff) % count
}
