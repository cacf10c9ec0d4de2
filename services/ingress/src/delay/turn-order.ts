import { SortedList } from './sorted-list.ts'

/*
 * In which order those who wait have their turns. Promises:
 *
 * - in a round every subject that waits has one turn, and within a subject who came first goes first;
 * - a round that has begun is closed: whoever comes then, new or back from a turn, has its first turn in the next one. So no stream
 *   of new subjects can keep those back who wait already;
 * - a subject has as many turns ahead as it has waiters: whoever goes before a turn takes none with it;
 * - nothing is known of a subject that does not wait, and a step costs the same however many did.
 */

/** What the order has to know of a waiter. */
export interface Entrant {
  readonly subject: string
  readonly spacingMs: number
  /** By when it came, no two the same. */
  readonly number: number
  /** Of its last turn; the order sets it. */
  round: number
}

/** A turn of a subject that is to come: whoever of it is first then has it. */
interface Slot<T> {
  readonly round: number
  readonly number: number
  readonly spacingMs: number
  readonly line: Line<T>
}

/** Those of one subject; as many slots as waiters, both in their order. */
interface Line<T> {
  readonly waiters: SortedList<T>
  readonly slots: SortedList<Slot<T>>
}

export class TurnOrder<T extends Entrant> {
  readonly #slots = new SortedList<Slot<T>>((a, b) => a.round - b.round || a.number - b.number)
  readonly #lines = new Map<string, Line<T>>()
  /** Of the slots of each round, from the current one on. */
  readonly #spacingsMs: number[] = []
  #spacingMs = 0
  #round = 0
  #hasBegun = false

  get size(): number {
    return this.#slots.size
  }

  /** Of all together. */
  get spacingMs(): number {
    return this.#spacingMs
  }

  get first(): T | undefined {
    return this.#slots.first?.line.waiters.first
  }

  /** Whom a place would be taken from: the last of the subject that has the last turn. */
  get last(): T | undefined {
    return this.#slots.last?.line.waiters.last
  }

  /** Of those who go before whoever of the subject came now. */
  aheadMs(subject: string): number {
    const rounds = this.#roundFor(this.#lines.get(subject)) - this.#round + 1
    if (rounds >= this.#spacingsMs.length) return this.#spacingMs
    let ms = 0
    for (let at = 0; at < rounds; at += 1) ms += this.#spacingsMs[at] ?? 0
    return ms
  }

  /** The next turn of its subject that is free. */
  add(waiter: T): void {
    this.#addIn(waiter, this.#roundFor(this.#lines.get(waiter.subject)))
  }

  /** Before all who have had no turn since. */
  putBack(waiter: T): void {
    this.#addIn(waiter, waiter.round)
  }

  /** Whose turn it is; undefined if nobody is there. */
  takeFirst(): T | undefined {
    const slot = this.#slots.first
    const waiter = slot?.line.waiters.first
    if (slot === undefined || waiter === undefined) return undefined
    if (slot.round > this.#round) {
      this.#spacingsMs.splice(0, slot.round - this.#round)
      this.#round = slot.round
    }
    this.#hasBegun = true
    waiter.round = slot.round
    this.#drop(waiter, slot)
    return waiter
  }

  /** Without a turn: the last turn of its subject is given up, and those behind it move on. */
  remove(waiter: T): void {
    const line = this.#lines.get(waiter.subject)
    const slot = line?.slots.last
    if (slot !== undefined) this.#drop(waiter, slot)
  }

  #addIn(waiter: T, round: number): void {
    const line = this.#lineOf(waiter.subject)
    const slot = { round, number: waiter.number, spacingMs: waiter.spacingMs, line }
    line.waiters.add(waiter)
    line.slots.add(slot)
    this.#slots.add(slot)
    this.#count(slot, 1)
  }

  #drop(waiter: T, slot: Slot<T>): void {
    const { line } = slot
    line.waiters.remove(waiter)
    line.slots.remove(slot)
    if (line.waiters.size === 0) this.#lines.delete(waiter.subject)
    this.#slots.remove(slot)
    this.#count(slot, -1)
  }

  #count({ round, spacingMs }: Slot<T>, sign: 1 | -1): void {
    const at = Math.max(0, round - this.#round)
    while (this.#spacingsMs.length <= at) this.#spacingsMs.push(0)
    this.#spacingsMs[at] = (this.#spacingsMs[at] ?? 0) + sign * spacingMs
    // Parts of milliseconds do not add up to nothing by themselves.
    this.#spacingMs = this.#slots.size === 0 ? 0 : this.#spacingMs + sign * spacingMs
  }

  #roundFor(line: Line<T> | undefined): number {
    const open = this.#hasBegun ? this.#round + 1 : this.#round
    const last = line?.slots.last
    return last === undefined ? open : Math.max(open, last.round + 1)
  }

  #lineOf(subject: string): Line<T> {
    const known = this.#lines.get(subject)
    if (known !== undefined) return known
    const waiters = new SortedList<T>((a, b) => a.number - b.number)
    const line = { waiters, slots: new SortedList<Slot<T>>((a, b) => a.round - b.round) }
    this.#lines.set(subject, line)
    return line
  }
}
