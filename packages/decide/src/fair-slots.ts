/** Of all slots: while fewer are taken no subject is short of one, and each may have as many as it wants. */
const plentyShare = 1 / 2
/** Of all slots, for one subject beyond that: it alone cannot take the rest, and a busy subject still has hundreds. */
export const subjectShareDefault = 1 / 4

/**
 * Slots that subjects share. Once half are taken, a subject may have `subjectShare` of all slots, and its part
 * shrinks with the square of what is still free: after three quarters it is a quarter of that, so that a few subjects
 * together cannot take the rest either. A subject without a slot may always take a free one. With `subjectShare` 1
 * only the number of slots counts. Subjects are given as `sharerOf` names them.
 */
export class FairSlots {
  readonly #max: number
  readonly #subjectShare: number
  /** Slots by sharer; a sharer without any is not in here. */
  readonly #counts = new Map<string, number>()
  #taken = 0

  constructor(max: number, subjectShare: number = subjectShareDefault) {
    this.#max = max
    this.#subjectShare = subjectShare
  }

  get taken(): number {
    return this.#taken
  }

  /** Whether one more slot may be taken now. */
  hasFor(sharer: string): boolean {
    const free = this.#max - this.#taken
    if (free <= 0) return false
    if (this.#taken < this.#max * plentyShare || this.#subjectShare >= 1) return true
    const own = this.#counts.get(sharer) ?? 0
    return own === 0 || own < this.#max * this.#subjectShare * (free / (this.#max * plentyShare)) ** 2
  }

  take(sharer: string): void {
    this.#taken += 1
    this.#counts.set(sharer, (this.#counts.get(sharer) ?? 0) + 1)
  }

  release(sharer: string): void {
    this.#taken -= 1
    const left = (this.#counts.get(sharer) ?? 0) - 1
    if (left > 0) this.#counts.set(sharer, left)
    else this.#counts.delete(sharer)
  }
}

/**
 * Who a subject shares slots with: itself alone, but anonymous IPv6 callers all of their /48, because one customer may
 * have its 65,536 networks of /64. `addressScope` writes up to four groups of sixteen bits, without zeros at the end.
 */
export function sharerOf(subject: string): string {
  const network = /^ip:(.*)::\/\d{2}$/.exec(subject)?.[1]
  if (network === undefined) return subject
  const [first = '', second = '0', third = '0'] = network.split(':')
  return `ip:${first}:${second}:${third}`
}
