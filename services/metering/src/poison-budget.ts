/** Unreadable records that are accepted in a burst: one in a hundred of the last ten thousand. */
const budgetMax = 100
const goodPerBad = 100

/**
 * Limits the share of unreadable records to one in a hundred of the last ten thousand or so. Each bad record spends one
 * unit, which a hundred good ones restore: a few bad records in a quiet hour stop nothing, a stream of them does.
 */
export class PoisonBudget {
  #left = budgetMax

  /** Counts a block's records. Returns false, and counts nothing, if too many of them are bad. */
  spend(records: number, bad: number): boolean {
    const left = Math.min(budgetMax, this.#left + (records - bad) / goodPerBad) - bad
    if (bad > 0 && left < 0) return false
    this.#left = left
    return true
  }
}
