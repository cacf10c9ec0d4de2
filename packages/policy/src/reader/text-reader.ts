import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { PolicyFault } from '../entities.ts'
import { type Fields, PolicyReader, type SourcePosition } from './policy-reader.ts'

/** Longer policies are rejected: no one writes them by hand, and this much takes about ten seconds to read. */
export const textLengthMax = 16 * 1024 * 1024

/** One thing that is wrong with a policy, at the position where a person fixes it. Lines and columns count from 1. */
export interface PolicyProblem extends PolicyFault {
  readonly file: string
  readonly line: number
  readonly column: number
}

/**
 * One line for people and editors, `weir.yaml:12:9  limits.minute.size: must be …`. Never holds a key or a password.
 */
export const formatProblem = ({ file, line, column, path, message }: PolicyProblem): string =>
  `${file}:${line}:${column}  ${path === '' ? '' : `${path}: `}${message}`

/** Reads values out of YAML (or JSON, which is YAML too); every problem has its line. */
export class TextReader extends PolicyReader {
  readonly #file: string
  readonly #lines = new LineCounter()

  constructor(file: string) {
    super()
    this.#file = file
  }

  /** In the order of the file. */
  get problems(): readonly PolicyProblem[] {
    return this.sortedProblems.map((one) => this.#placed(one))
  }

  /** In the order of the file. */
  get remarks(): readonly PolicyProblem[] {
    return this.sortedRemarks.map((one) => this.#placed(one))
  }

  /** The whole document, or undefined when it cannot be taken apart. */
  open(text: string): SourcePosition | undefined {
    if (text.length > textLengthMax) {
      return this.add('', `is ${text.length} characters long; a policy can have at most ${textLengthMax}`)
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
      const plain = code === 'MULTIPLE_DOCS' ? 'a policy is a single document; a second one begins here' : message
      this.add('', `is not valid YAML: ${plain}`, pos[0])
    }
    if (faults.length > 0) return undefined
    const offset = offsetOf(document.contents) ?? 0
    return { parent: undefined, key: '', ...nodeOf(document.contents), valueOffset: offset, keyOffset: offset }
  }

  map(at: SourcePosition, what: string): Fields | undefined {
    if (!isMap(at.node)) return this.wrong(at, `must be ${what}`)
    const fields = new Map<string, SourcePosition>()
    for (const { key, value } of at.node.items) {
      const name = isScalar(key) ? String(key.value) : ''
      const keyOffset = isScalar(key) && key.range ? key.range[0] : at.valueOffset
      const given = isScalar(value) && value.source === '' && value.type === 'PLAIN' ? null : value
      const field = { parent: at, key: name, ...nodeOf(value), valueOffset: offsetOf(given) ?? keyOffset, keyOffset }
      const first = fields.get(name)
      if (first === undefined) fields.set(name, field)
      else this.problemAtKey(field, `is set twice, first ${this.where(first)}`)
    }
    return fields
  }

  list(at: SourcePosition, what: string): readonly SourcePosition[] | undefined {
    if (!isSeq(at.node)) return this.wrong(at, `must be ${what}`)
    return at.node.items.map((node, index) => {
      const offset = offsetOf(node) ?? at.valueOffset
      return { parent: at, key: index, ...nodeOf(node), valueOffset: offset, keyOffset: offset }
    })
  }

  /** The entries of a map or list as JSON has them. */
  written({ node }: SourcePosition): readonly (readonly [name: string, value: unknown])[] {
    if (isSeq(node)) return node.items.map((item, index) => [String(index), jsonOf(item)])
    if (!isMap(node)) return []
    return node.items.map(({ key, value }) => [isScalar(key) ? String(key.value) : '', jsonOf(value)])
  }

  override wrong(at: SourcePosition, message: string, hint = ''): undefined {
    if (!isAlias(at.node)) return super.wrong(at, message, hint)
    return this.problem(at, 'is a YAML alias, which policies do not support; write the value out')
  }

  protected lineOf({ keyOffset }: SourcePosition): number {
    return this.#position(keyOffset).line
  }

  protected isList(node: object): boolean {
    return isSeq(node)
  }

  #placed({ offset, path, message }: PolicyFault & { readonly offset: number }): PolicyProblem {
    const { line, col } = this.#position(offset)
    return { file: this.#file, line, column: col, path, message }
  }

  #position(offset: number): { line: number; col: number } {
    return this.#lines.lineStarts.length === 0 ? { line: 1, col: 1 } : this.#lines.linePos(offset)
  }
}

/** A scalar's value with its source; the node of anything else. */
const nodeOf = (node: unknown) =>
  isScalar(node) ? { node: node.value, source: node.source } : { node, source: undefined }

const offsetOf = (node: unknown) => (isNode(node) ? node.range?.[0] : undefined)

const jsonOf = (node: unknown): unknown => (isNode(node) ? node.toJSON() : null)
