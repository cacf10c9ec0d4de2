/** The label of all names that have no cell of their own. No name of the policy begins with `_`. */
const others = '_other'

/**
 * Cells of a metric by names out of the policy. The first `max` names get one each, in the order in which they come,
 * and all others share one. A name keeps its cell until the process ends, so that a counter never falls. `of` is
 * for when a name comes into being, not per request.
 */
export class LabelCells<Cell> {
  readonly #max: number
  readonly #create: () => Cell
  readonly #cells = new Map<string, Cell>()
  #shared: Cell | undefined

  constructor(max: number, create: () => Cell) {
    this.#max = max
    this.#create = create
  }

  of(name: string): Cell {
    if (this.#cells.has(name) || this.#cells.size >= this.#max) return this.find(name)
    const cell = this.#create()
    this.#cells.set(name, cell)
    return cell
  }

  /** The same, but a name without a cell gets none: for names that may not be the policy's. */
  find(name: string): Cell {
    const known = this.#cells.get(name)
    if (known !== undefined) return known
    this.#shared ??= this.#create()
    return this.#shared
  }

  /** Every label with its cell. */
  *entries(): Iterable<readonly [label: string, cell: Cell]> {
    yield* this.#cells
    if (this.#shared !== undefined) yield [others, this.#shared]
  }
}
