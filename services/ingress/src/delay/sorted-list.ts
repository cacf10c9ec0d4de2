/**
 * Things in an order of their own, no two of them equal by it. Finding a place takes steps by the logarithm, moving the rest one copy
 * of pointers: microseconds with ten thousand.
 */
export class SortedList<T> {
  readonly #items: T[] = []
  readonly #compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  get last(): T | undefined {
    return this.#items.at(-1)
  }

  add(item: T): void {
    this.#items.splice(this.#placeOf(item), 0, item)
  }

  /** Nothing happens if it is not there. */
  remove(item: T): void {
    const at = this.#placeOf(item)
    if (this.#items[at] === item) this.#items.splice(at, 1)
  }

  #placeOf(item: T): number {
    let [from, to] = [0, this.#items.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      const other = this.#items[middle]
      if (other !== undefined && this.#compare(other, item) < 0) from = middle + 1
      else to = middle
    }
    return from
  }
}
