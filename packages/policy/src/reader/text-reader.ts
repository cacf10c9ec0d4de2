import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { PolicyProblem } from '../policy-problem.ts'
import { type Field, type Place, PolicyReader, pathOf } from './policy-reader.ts'

/** Kept problems end here: a file with more is wrong as a whole, and nobody reads a longer list. */
export const problemsMax = 200
/** Longer policies are refused: nobody writes them by hand, and this much takes about ten seconds to read. */
export const textLengthMax = 16 * 1024 * 1024
/** Longest quotation of a wrong value in a message. */
const quotedLengthMax = 40

/** A wrong value as messages show it. */
export const quoted = (text: string): string =>
  text.length > quotedLengthMax ? `${text.slice(0, quotedLengthMax)}…` : text

/** Reads values out of YAML (or JSON, which is YAML too); every problem has its line. */
export class TextReader extends PolicyReader {
  readonly #file: string
  readonly #lines = new LineCounter()
  readonly #problems: (PolicyProblem & { readonly offset: number })[] = []
  #left = 0

  constructor(file: string) {
    super()
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
    const offset = offsetOf(node) ?? 0
    return { path: '', node, valueOffset: offset, keyOffset: offset }
  }

  problem(place: Place, message: string): undefined {
    this.#add(place.valueOffset, place.path, message)
  }

  problemAtKey(place: Place, message: string): undefined {
    this.#add(place.keyOffset, place.path, message)
  }

  lineOf(place: Place): number {
    return this.#line(place.keyOffset).line
  }

  isEmpty(place: Place): boolean {
    return place.node === null || (isScalar(place.node) && place.node.value === null)
  }

  map(place: Place, what: string): Map<string, Field> | undefined {
    if (!isMap(place.node)) return this.wrong(place, `must be ${what}`)
    const fields = new Map<string, Field>()
    for (const { key, value } of place.node.items) {
      const name = isScalar(key) ? String(key.value) : ''
      const keyOffset = isScalar(key) && key.range ? key.range[0] : place.valueOffset
      const given = isScalar(value) && value.source === '' && value.type === 'PLAIN' ? null : value
      const path = pathOf(place.path, name)
      const field = { key: name, path, node: value, keyOffset, valueOffset: offsetOf(given) ?? keyOffset }
      const first = fields.get(name)
      if (first === undefined) fields.set(name, field)
      else this.problemAtKey(field, `is written twice, first on line ${this.lineOf(first)}`)
    }
    return fields
  }

  list(place: Place, what: string): readonly Place[] | undefined {
    if (!isSeq(place.node)) return this.wrong(place, `must be ${what}`)
    return place.node.items.map((node, index) => {
      const offset = offsetOf(node) ?? place.valueOffset
      return { path: `${place.path}[${index}]`, node, valueOffset: offset, keyOffset: offset }
    })
  }

  /** The entries of a map or list as they would stand in JSON. */
  written({ node }: Place): readonly (readonly [name: string, value: unknown])[] {
    if (isSeq(node)) return node.items.map((item, index) => [String(index), jsonOf(item)])
    if (!isMap(node)) return []
    return node.items.map(({ key, value }) => [isScalar(key) ? String(key.value) : '', jsonOf(value)])
  }

  scalar({ node }: Place): unknown {
    return isScalar(node) ? node.value : undefined
  }

  protected source({ node }: Place): string | undefined {
    return isScalar(node) ? (node.source ?? String(node.value)) : undefined
  }

  protected wrong(place: Place, message: string, hint = ''): undefined {
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

const offsetOf = (node: unknown) => (isNode(node) ? node.range?.[0] : undefined)

const jsonOf = (node: unknown): unknown => (isNode(node) ? node.toJSON() : null)

function describe(node: unknown): string {
  if (isMap(node)) return 'a map'
  if (isSeq(node)) return 'a list'
  if (!isScalar(node) || node.value === null) return 'empty'
  const text = typeof node.value === 'string' ? JSON.stringify(node.value) : (node.source ?? String(node.value))
  return quoted(text)
}
