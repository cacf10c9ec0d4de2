/** Remembered at most; a journal that is full for longer has refused far more, and forgotten ones are told as repeats. */
const idsMax = 10_000

/**
 * Ids of decisions that were charged under an idempotency key, but turned away because they could not be recorded. A
 * repeat of theirs must be recorded before it is admitted, or nobody would ever count it. Of this process only.
 */
export interface Unrecorded {
  add(id: string): void
  has(id: string): boolean
  delete(id: string): void
}

export function createUnrecorded(): Unrecorded {
  const ids = new Set<string>()
  return {
    add(id) {
      const [oldest] = ids
      if (ids.size >= idsMax && oldest !== undefined) ids.delete(oldest)
      ids.add(id)
    },
    has: (id) => ids.has(id),
    delete: (id) => void ids.delete(id),
  }
}
