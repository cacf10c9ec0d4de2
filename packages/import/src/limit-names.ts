import { parseName } from '@weir/policy/policy-values.ts'

/** Longer names are shortened: `parseName` has the same bound. */
const lengthMax = 64
/** These name policies of their own in the RateLimit fields. */
const reserved = ['unauthenticated', 'unlimited']

/** Names of limits, each of them valid and taken once. The same calls give the same names. */
export class LimitNames {
  readonly #taken = new Set<string>(reserved)
  /** Where the last search for a name ended. */
  readonly #counts = new Map<string, number>()

  /** Takes a name as it is. Returns whether it is valid and was free. */
  takeExactly(name: string): boolean {
    if (parseName(name) === undefined || this.#taken.has(name)) return false
    this.#taken.add(name)
    return true
  }

  /** Takes the first free name like the wanted one. */
  take(wanted: string): string {
    const valid = wanted.replaceAll(/[^\w.-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '')
    const name = (valid === '' ? 'limit' : valid).slice(0, lengthMax)
    for (let count = this.#counts.get(name) ?? 1; ; count += 1) {
      this.#counts.set(name, count)
      const ending = count === 1 ? '' : `-${count}`
      const tried = `${name.slice(0, lengthMax - ending.length)}${ending}`
      if (this.takeExactly(tried)) return tried
    }
  }
}
