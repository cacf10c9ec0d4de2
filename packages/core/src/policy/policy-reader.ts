import { isAlias, isMap, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from 'yaml'
import type { PolicyProblem } from './policy-problem.ts'
import { didYouMean } from './suggest.ts'

/** A value of the policy with where it stands, for messages. */
export interface Place {
  readonly path: string
  readonly node: ParsedNode | null
  /** Offset of the value; of its key when the value is empty. */
  readonly valueOffset: number
  /** Offset of the key before the value; of the value itself in a list. */
  readonly keyOffset: number
}

export interface Field extends Place {
  readonly key: string
}

/** Kept problems end here: a file with more is wrong as a whole, and nobody reads a longer list. */
const problemsMax = 200
/** Longer policies are refused: nobody writes them by hand, and this much takes about ten seconds to read. */
const textLengthMax = 16 * 1024 * 1024
/** Longest quotation of a wrong value in a message. */
const quotedLengthMax = 40

/**
 * Reads values out of YAML (or JSON, which is YAML too) and collects every problem with its line, instead of stopping at
 * the first. A reading method gives undefined exactly when it has added a problem.
 */
export class PolicyReader {
  readonly #file: string
  readonly #lines = new LineCounter()
  readonly #problems: (PolicyProblem & { readonly offset: number })[] = []
  #left = 0

  constructor(file: string) {
    this.#file = file
  }

  /** In the order of the file. */
  get problems(): readonly PolicyProblem[] {
    const sorted = this.#problems.toSorted((a, b) => a.offset - b.offset)
    const shown = sorted.map(({ offset: _, ...problem }) => problem)
    const last = shown.at(-1)
    if (this.#left === 0 || last === undefined) return shown
    return [...shown, { ...last, path: '', message: `and ${this.#left} more problems` }]
  }

  /** The whole document, or undefined when it cannot be taken apart. */
  open(text: string): Place | undefined {
    if (text.length > textLengthMax) {
      this.#add(0, '', `is ${text.length} characters long; a policy has at most ${textLengthMax}`)
      return undefined
    }
    // Keys that are written twice are found in `map`, which can name both lines.
    const document = parseDocument(text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      uniqueKeys: false,
      stringKeys: true,
      resolveKnownTags: false,
      version: '1.2',
      schema: 'core',
      merge: false,
      logLevel: 'error',
    })
    const faults = [...document.errors, ...document.warnings]
    for (const { code, pos, message } of faults) {
      const plain = code === 'MULTIPLE_DOCS' ? 'a policy is one document; another begins here' : message
      this.#add(pos[0], '', `is not valid YAML: ${plain}`)
    }
    if (faults.length > 0) return undefined
    const node = document.contents
    const offset = node?.range[0] ?? 0
    return { path: '', node, valueOffset: offset, keyOffset: offset }
  }

  /** A problem with a value. */
  problem(place: Place, message: string): undefined {
    this.#add(place.valueOffset, place.path, message)
  }

  /** A problem with a name, or with something missing below it. */
  problemAtKey(place: Place, message: string): undefined {
    this.#add(place.keyOffset, place.path, message)
  }

  lineOf(place: Place): number {
    return this.#line(place.keyOffset).line
  }

  isEmpty(place: Place): boolean {
    return place.node === null || (isScalar(place.node) && place.node.value === null)
  }

  /** Name and value of every entry; a name that is written twice is a problem with both lines, and its first entry stays. */
  map(place: Place, what: string): Map<string, Field> | undefined {
    if (!isMap(place.node)) return this.#wrong(place, `must be ${what}`)
    const fields = new Map<string, Field>()
    for (const { key, value } of place.node.items) {
      const name = isScalar(key) ? String(key.value) : ''
      const keyOffset = isScalar(key) && key.range ? key.range[0] : place.valueOffset
      const given = isScalar(value) && value.source === '' && value.type === 'PLAIN' ? null : value
      const path = pathOf(place.path, name)
      const field = { key: name, path, node: value, keyOffset, valueOffset: given?.range[0] ?? keyOffset }
      const first = fields.get(name)
      if (first === undefined) fields.set(name, field)
      else this.problemAtKey(field, `is written twice, first on line ${this.lineOf(first)}`)
    }
    return fields
  }

  /** The entries of a map whose keys are fixed: any other is a problem, and so is a missing one of `required`. */
  fields(place: Place, what: string, known: readonly string[], required: readonly string[]) {
    const fields = this.map(place, `${what} (a map of its keys)`)
    if (fields === undefined) return undefined
    for (const field of fields.values()) {
      if (known.includes(field.key)) continue
      this.problemAtKey(field, `is not a key of ${what}${didYouMean(field.key, known)}`)
    }
    for (const name of required) {
      const field = fields.get(name)
      if (field === undefined) this.problemAtKey(place, `needs \`${name}\``)
    }
    return fields
  }

  list(place: Place, what: string): readonly Place[] | undefined {
    if (!isSeq(place.node)) return this.#wrong(place, `must be ${what}`)
    return place.node.items.map((node, index) => {
      const offset = node.range[0]
      return { path: `${place.path}[${index}]`, node, valueOffset: offset, keyOffset: offset }
    })
  }

  /** The entries of a map or list as they would stand in JSON. */
  written({ node }: Place): readonly (readonly [name: string, value: unknown])[] {
    if (isSeq(node)) return node.items.map((item, index) => [String(index), item.toJSON()])
    if (!isMap(node)) return []
    return node.items.map(({ key, value }) => [isScalar(key) ? String(key.value) : '', value?.toJSON() ?? null])
  }

  /** A text that `read` understands; `what` says what would have been right. */
  text<T = string>(place: Place, what: string, read: (text: string) => T | undefined): T | undefined {
    const value = isScalar(place.node) ? place.node.value : undefined
    const result = typeof value === 'string' ? read(value) : undefined
    return result ?? this.#wrong(place, `must be ${what}`)
  }

  /** As written, whatever YAML takes it for, and never repeated in a message: for values that may turn out to be secret. */
  secretText<T>(place: Place, what: string, read: (text: string) => T | undefined): T | undefined {
    const text = isScalar(place.node) ? (place.node.source ?? String(place.node.value)) : undefined
    const result = text === undefined ? undefined : read(text)
    return result ?? this.problem(place, `must be ${what}`)
  }

  integer(place: Place, min: number, max: number): number | undefined {
    const value = isScalar(place.node) ? place.node.value : undefined
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    return this.#wrong(place, `must be a whole number from ${min} to ${max}`)
  }

  boolean(place: Place): boolean | undefined {
    const value = isScalar(place.node) ? place.node.value : undefined
    return typeof value === 'boolean' ? value : this.#wrong(place, 'must be true or false')
  }

  oneOf<const T extends string>(place: Place, options: readonly T[]): T | undefined {
    const value = isScalar(place.node) ? place.node.value : undefined
    const option = options.find((candidate) => candidate === value)
    if (option !== undefined) return option
    const hint = typeof value === 'string' ? didYouMean(value, options) : ''
    return this.#wrong(place, `must be one of ${options.join(', ')}`, hint)
  }

  #wrong(place: Place, message: string, hint = ''): undefined {
    const alias = isAlias(place.node)
    if (alias) return this.problem(place, 'is a YAML alias, which a policy does not have; write the value out')
    return this.problem(place, `${message}, but is ${describe(place.node)}${hint}`)
  }

  #line(offset: number): { line: number; col: number } {
    return this.#lines.lineStarts.length === 0 ? { line: 1, col: 1 } : this.#lines.linePos(offset)
  }

  #add(offset: number, path: string, message: string): void {
    if (this.#problems.length >= problemsMax) {
      this.#left += 1
      return
    }
    const { line, col } = this.#line(offset)
    this.#problems.push({ file: this.#file, line, column: col, path, message, offset })
  }
}

/** The path of an entry: with a dot, or quoted where its name has more than letters. */
export function pathOf(parent: string, name: string): string {
  if (!/^[\w-]{1,128}$/.test(name)) return `${parent}[${JSON.stringify(name.slice(0, 128))}]`
  return parent === '' ? name : `${parent}.${name}`
}

function describe(node: ParsedNode | null): string {
  if (isMap(node)) return 'a map'
  if (isSeq(node)) return 'a list'
  if (!isScalar(node) || node.value === null) return 'empty'
  const text = typeof node.value === 'string' ? JSON.stringify(node.value) : (node.source ?? String(node.value))
  return text.length > quotedLengthMax ? `${text.slice(0, quotedLengthMax)}…` : text
}
