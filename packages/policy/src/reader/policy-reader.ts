import { didYouMean, plainWord } from '@weir/core/suggest.ts'
import type { PolicyFault } from '../entities.ts'

/** Kept problems end here: a policy with more is wrong as a whole, and no one reads a longer list. */
const problemsMax = 200
/** As many as problems that are kept. */
const suggestionsMax = 200
/** Longest quotation of a wrong value in a message. */
const quotedLengthMax = 40

/** A value of the policy with its position in the source, for messages. */
export interface SourcePosition {
  /** The map or list that holds the value; undefined for the whole policy. */
  readonly parent: SourcePosition | undefined
  /** The name in a map, or the index in a list. */
  readonly key: string | number
  /** A text, number, boolean or null; of a map or list only the reader that made the position knows what it is. */
  readonly node: unknown
  /** A scalar of a text as written, whatever it is taken for. */
  readonly source?: string | undefined
  /** Offset of the value; of its key when the value is empty. Always 0 without a text. */
  readonly valueOffset: number
  /** Offset of the key before the value; of the value itself in a list. Always 0 without a text. */
  readonly keyOffset: number
}

/** The entries of a map, by name. */
export type Fields = ReadonlyMap<string, SourcePosition>

/** A problem with the offset by which problems are ordered. */
interface FoundProblem extends PolicyFault {
  readonly offset: number
}

/** Collects problems: at most 200, and the number of the others. */
export class ProblemList {
  readonly #problems: FoundProblem[] = []
  readonly #remarks: FoundProblem[] = []
  #left = 0

  /** What is right and does nothing, or less than its writer may expect, in the order of the source. */
  protected get sortedRemarks(): readonly FoundProblem[] {
    return this.#remarks.toSorted((a, b) => a.offset - b.offset)
  }

  /** How many problems were found so far: a value is right if reading it has found none. */
  get problemCount(): number {
    return this.#problems.length + this.#left
  }

  /** In the order of the source; without a text as they were found. */
  get faults(): readonly PolicyFault[] {
    return this.sortedProblems.map(({ path, message }) => ({ path, message }))
  }

  protected get sortedProblems(): readonly FoundProblem[] {
    const sorted = this.#problems.toSorted((a, b) => a.offset - b.offset)
    const last = sorted.at(-1)
    if (this.#left === 0 || last === undefined) return sorted
    return [...sorted, { ...last, path: '', message: `and ${this.#left} more problems` }]
  }

  add(path: string, message: string, offset = 0): undefined {
    if (this.problemCount < problemsMax) this.#problems.push({ offset, path, message })
    else this.#left += 1
  }

  /** Adds a remark: at most as many as problems. */
  addRemark(path: string, message: string, offset: number): undefined {
    if (this.#remarks.length < problemsMax) this.#remarks.push({ offset, path, message })
  }
}

/**
 * Reads values and collects every problem, instead of stopping at the first. A reading method returns undefined exactly
 * when it has added a problem. TextReader reads YAML; ValueReader reads the values of JSON, a hundred times as fast.
 */
export abstract class PolicyReader extends ProblemList {
  /** Where `budget` of a plan or subject is written: what it stands for is known when all is read. */
  readonly formerBudgets: SourcePosition[] = []
  #suggestions = 0

  /** `; did you mean …?` for the first problems: no one reads more, and each compares all the names. */
  near(word: string, known: Iterable<string>): string {
    this.#suggestions += 1
    return this.#suggestions > suggestionsMax ? '' : didYouMean(word, known)
  }

  /** Adds a problem with a value. */
  problem(at: SourcePosition, message: string): undefined {
    return this.add(pathOf(at), message, at.valueOffset)
  }

  /** Remarks on a key that does nothing, or less than its writer may expect. */
  remark(at: SourcePosition, message: string): undefined {
    return this.addRemark(pathOf(at), message, at.keyOffset)
  }

  /** Adds a problem with a name, or with something missing below it. */
  problemAtKey(at: SourcePosition, message: string): undefined {
    return this.add(pathOf(at), message, at.keyOffset)
  }

  /** Adds a problem with a key if it is written. */
  refuseKey(fields: Fields, key: string, message: string): undefined {
    const at = fields.get(key)
    if (at !== undefined) this.problemAtKey(at, message)
  }

  /** Adds a problem with a value of which something else was expected. */
  wrong(at: SourcePosition, message: string, hint = ''): undefined {
    return this.problem(at, `${message}, but is ${this.#describe(at)}${hint}`)
  }

  /** How messages show the value. */
  #describe({ node, source }: SourcePosition): string {
    if (node === null || node === undefined) return 'empty'
    if (typeof node === 'object') return this.isList(node) ? 'a list' : 'a map'
    return quoted(node, source)
  }

  protected abstract isList(node: object): boolean

  /** Undefined without a text. */
  protected abstract lineOf(at: SourcePosition): number | undefined

  /** `on line 12`, or without a text `at limits.minute`. */
  where(at: SourcePosition): string {
    const line = this.lineOf(at)
    return line === undefined ? `at ${pathOf(entityOf(at))}` : `on line ${line}`
  }

  /** ` (line 12)`, or nothing without a text. */
  lineNote(at: SourcePosition): string {
    const line = this.lineOf(at)
    return line === undefined ? '' : ` (line ${line})`
  }

  isEmpty({ node }: SourcePosition): boolean {
    return node === null
  }

  /**
   * The value of every entry by its name; a name that is written twice is a problem with both lines, and the first
   * stays.
   */
  abstract map(at: SourcePosition, what: string): Fields | undefined

  abstract list(at: SourcePosition, what: string): readonly SourcePosition[] | undefined

  /** A text, number or boolean; undefined for anything else. */
  scalar({ node }: SourcePosition): unknown {
    return typeof node === 'object' ? undefined : node
  }

  /** The entries of a map whose keys are fixed: any other is a problem, and so is a missing one of `required`. */
  fields(
    at: SourcePosition,
    what: string,
    known: readonly string[],
    required: readonly string[] = [],
  ): Fields | undefined {
    const fields = this.map(at, `${what} (a map of its settings)`)
    if (fields === undefined) return undefined
    for (const [name, field] of fields) {
      if (known.includes(name)) continue
      this.problemAtKey(field, `is not a setting of ${what}${this.near(name, known)}`)
    }
    for (const name of required) if (!fields.has(name)) this.problemAtKey(at, `needs \`${name}\``)
    return fields
  }

  /** A text that `read` understands; `what` says what would have been right. */
  text<T = string>(at: SourcePosition, what: string, read: (text: string) => T | undefined): T | undefined {
    const value = this.scalar(at)
    const result = typeof value === 'string' ? read(value) : undefined
    return result ?? this.wrong(at, `must be ${what}`)
  }

  /** As written, and never repeated in a message: for values that may turn out to be secret. */
  secretText<T>(at: SourcePosition, what: string, read: (text: string) => T | undefined): T | undefined {
    const text = at.source ?? this.scalar(at)
    const result = text === undefined ? undefined : read(String(text))
    return result ?? this.problem(at, `must be ${what}`)
  }

  integer(at: SourcePosition, min: number, max: number): number | undefined {
    const value = this.scalar(at)
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    return this.wrong(at, `must be a whole number from ${min} to ${max}`)
  }

  /** `others` are hints for words that are known elsewhere, in small letters and without `_` and `-`. */
  oneOf<const T extends string>(
    at: SourcePosition,
    options: readonly T[],
    others?: ReadonlyMap<string, string>,
  ): T | undefined {
    const value = this.scalar(at)
    const option = options.find((candidate) => candidate === value)
    if (option !== undefined) return option
    const rule = `must be one of ${options.join(', ')}`
    if (typeof value !== 'string') return this.wrong(at, rule)
    const hint = others?.get(plainWord(value))
    return this.wrong(at, rule, hint === undefined ? this.near(value, options) : `; ${hint}`)
  }

  /** Returns the entry with this name; undefined also for one that is wrong, which is a problem at its own position. */
  find<T>(
    at: SourcePosition,
    kind: 'limit' | 'plan' | 'upstream' | 'meter' | 'route' | 'price list' | 'subject',
    name: string,
    all: ReadonlyMap<string, T>,
  ): T | undefined {
    if (all.has(name)) return all.get(name)
    return this.problem(at, `there is no ${kind} ${JSON.stringify(name)}${this.near(name, all.keys())}`)
  }
}

/** `limits.minute.size`, `routes[0].match`; empty for the whole policy. */
function pathOf({ parent, key }: SourcePosition): string {
  if (parent === undefined) return ''
  return typeof key === 'number' ? `${pathOf(parent)}[${key}]` : pathBelow(pathOf(parent), key)
}

/** The path of an entry: with a dot, or quoted where its name has more than letters. */
export function pathBelow(parent: string, name: string): string {
  if (!/^[\w-]{1,128}$/.test(name)) return `${parent}[${JSON.stringify(name.slice(0, 128))}]`
  return parent === '' ? name : `${parent}.${name}`
}

/** The entry of a section that holds the value. */
function entityOf(at: SourcePosition): SourcePosition {
  let entity = at
  while (entity.parent?.parent?.parent !== undefined) entity = entity.parent
  return entity
}

/** A wrong text, number or boolean as messages show it. */
function quoted(value: unknown, written = String(value)): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : written
  return text.length > quotedLengthMax ? `${text.slice(0, quotedLengthMax)}…` : text
}
