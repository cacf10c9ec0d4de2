/** So many bad records are borne at once; as many as one in a hundred of the last ten thousand. */
const allowanceMax = 100
const goodPerBad = 100

/**
 * Whether more than one record in a hundred is bad, as of the last ten thousand or so. Each bad one uses up an allowance, which a
 * hundred good ones restore: a few bad ones in a quiet hour stop nothing, a stream of them does.
 */
export class BadShare {
  #allowance = allowanceMax

  /** Counts a block's records. False, and nothing counted, where they are too bad. */
  take(records: number, bad: number): boolean {
    const left = Math.min(allowanceMax, this.#allowance + (records - bad) / goodPerBad) - bad
    if (bad > 0 && left < 0) return false
    this.#allowance = left
    return true
  }
}
