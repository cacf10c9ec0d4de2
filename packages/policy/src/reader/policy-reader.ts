import { didYouMean } from '../suggest.ts'

/** As many as problems that are kept (text-reader.ts). */
const suggestionsMax = 200

/** A value of the policy with where it stands, for messages. */
export interface Place {
  readonly path: string
  /** Only the reader that gave the place knows what it is. */
  readonly node: unknown
  /** Offset of the value; of its key when the value is empty. */
  readonly valueOffset: number
  /** Offset of the key before the value; of the value itself in a list. */
  readonly keyOffset: number
}

export interface Field extends Place {
  readonly key: string
}

/**
 * Reads values and collects every problem, instead of stopping at the first. A reading method gives undefined exactly when
 * it has added a problem. TextReader reads YAML and words the problems; ValueReader reads JSON's values, a hundred times as fast.
 */
export abstract class PolicyReader {
  #suggestions = 0

  /** `; did you mean …?` for the first problems of a text: nobody reads more, and each costs a look at all the names. */
  near(word: string, known: Iterable<string>): string {
    this.#suggestions += 1
    return this.#suggestions > suggestionsMax ? '' : didYouMean(word, known)
  }

  /** A problem with a value. */
  abstract problem(place: Place, message: string): undefined

  /** A problem with a name, or with something missing below it. */
  abstract problemAtKey(place: Place, message: string): undefined

  /** A problem with a value of which something else was expected. */
  protected abstract wrong(place: Place, message: string, hint?: string): undefined

  abstract lineOf(place: Place): number

  abstract isEmpty(place: Place): boolean

  /** Name and value of every entry; a name that is written twice is a problem with both lines, and its first entry stays. */
  abstract map(place: Place, what: string): ReadonlyMap<string, Field> | undefined

  abstract list(place: Place, what: string): readonly Place[] | undefined

  /** A text, number, boolean or null; undefined for anything else. */
  abstract scalar(place: Place): unknown

  /** A scalar as written, whatever it is taken for. */
  protected abstract source(place: Place): string | undefined

  /** The entries of a map whose keys are fixed: any other is a problem, and so is a missing one of `required`. */
  fields(place: Place, what: string, known: readonly string[], required: readonly string[]) {
    const fields = this.map(place, `${what} (a map of its keys)`)
    if (fields === undefined) return undefined
    for (const field of fields.values()) {
      if (known.includes(field.key)) continue
      this.problemAtKey(field, `is not a key of ${what}${this.near(field.key, known)}`)
    }
    for (const name of required) {
      const field = fields.get(name)
      if (field === undefined) this.problemAtKey(place, `needs \`${name}\``)
    }
    return fields
  }

  /** A text that `read` understands; `what` says what would have been right. */
  text<T = string>(place: Place, what: string, read: (text: string) => T | undefined): T | undefined {
    const value = this.scalar(place)
    const result = typeof value === 'string' ? read(value) : undefined
    return result ?? this.wrong(place, `must be ${what}`)
  }

  /** As written, and never repeated in a message: for values that may turn out to be secret. */
  secretText<T>(place: Place, what: string, read: (text: string) => T | undefined): T | undefined {
    const text = this.source(place)
    const result = text === undefined ? undefined : read(text)
    return result ?? this.problem(place, `must be ${what}`)
  }

  integer(place: Place, min: number, max: number): number | undefined {
    const value = this.scalar(place)
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    return this.wrong(place, `must be a whole number from ${min} to ${max}`)
  }

  boolean(place: Place): boolean | undefined {
    const value = this.scalar(place)
    return typeof value === 'boolean' ? value : this.wrong(place, 'must be true or false')
  }

  oneOf<const T extends string>(place: Place, options: readonly T[]): T | undefined {
    const value = this.scalar(place)
    const option = options.find((candidate) => candidate === value)
    if (option !== undefined) return option
    const hint = typeof value === 'string' ? this.near(value, options) : ''
    return this.wrong(place, `must be one of ${options.join(', ')}`, hint)
  }
}

/** The path of an entry: with a dot, or quoted where its name has more than letters. */
export function pathOf(parent: string, name: string): string {
  if (!/^[\w-]{1,128}$/.test(name)) return `${parent}[${JSON.stringify(name.slice(0, 128))}]`
  return parent === '' ? name : `${parent}.${name}`
}
