import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments, visit } from 'yaml'

/** A place in a file that another program's configuration is read from. */
export interface Spot {
  readonly file: string
  /** Counts from 1. */
  readonly line: number
}

/** Why a file is not what it should be. */
export interface ImportProblem extends Spot {
  readonly message: string
}

/** As editors open it. */
export const spotName = ({ file, line }: Spot): string => `${file}:${line}`

/** One line for people and editors. */
export const formatImportProblem = (problem: ImportProblem): string => `${spotName(problem)}  ${problem.message}`

/** A value with its position in the file. */
export interface ForeignValue extends Spot {
  readonly node: unknown
  /** The node as it is written: an alias itself. */
  readonly raw?: unknown
}

const reading = { prettyErrors: false, uniqueKeys: false, stringKeys: true, schema: 'core', logLevel: 'error' } as const
/** No real configuration is longer; this much is read in seconds. */
const textLengthMax = 4 * 1024 * 1024
/** Merge keys within merge keys end here: no real file nests them deeper. */
const mergeDepthMax = 16
/** Maps that merge keys bring in, in all: lists of lists of them multiply. */
const mergesMax = 10_000
/** Entries of lists, in all: a policy has no more, and aliases of a long list multiply. */
const itemsMax = 100_000
/** Kept problems end here: no one reads a longer list. */
const problemsMax = 200

/**
 * A YAML file of another program. Unlike a policy it may have aliases and merge keys, and any scalar is a text where
 * one is wanted. Problems are collected; a reading method gives undefined exactly when it has added one.
 */
export class ForeignFile {
  readonly problems: ImportProblem[] = []
  readonly #file: string
  readonly #lines = new LineCounter()
  readonly #linesBefore: number
  readonly #documents: { readonly document: Document; readonly end: number }[] = []
  #merges = 0
  #items = 0

  /** `linesBefore` is where the text begins in the file, if the file has it in a value. */
  constructor(file: string, linesBefore = 0) {
    this.#file = file
    this.#linesBefore = linesBefore
  }

  /** Its documents, an empty one if it has none; none when one of them cannot be taken apart. */
  documents(text: string): readonly ForeignValue[] {
    const top = { file: this.#file, line: this.#linesBefore + 1, node: undefined }
    if (text.length > textLengthMax) return this.problem(top, `is longer than ${textLengthMax} characters`) ?? []
    const documents: readonly Document[] = [...parseAllDocuments(text, { lineCounter: this.#lines, ...reading })]
    for (const { errors } of documents) {
      for (const { pos, message } of errors) this.problem(this.#spot(pos[0]), `is not valid YAML: ${message}`)
    }
    if (this.problems.length > 0) return []
    if (documents.length === 0) return [top]
    return documents.map((document) => {
      const [begin = 0, , end = begin] = document.range ?? []
      this.#documents.push({ document, end })
      return this.#value(document.contents, begin)
    })
  }

  /** Calls back for every field of the documents, in their order; an alias counts where its value is written too. */
  eachField(call: (name: string, value: ForeignValue) => void): void {
    for (const { document } of this.#documents) {
      visit(document, {
        Pair: (_, { key, value }) =>
          call(isScalar(key) ? String(key.value) : '', this.#value(value, offsetOf(key) ?? 0)),
      })
    }
  }

  /** One that is found twice is one. */
  problem({ file, line }: Spot, message: string): undefined {
    const isKnown = this.problems.some((one) => one.line === line && one.message === message)
    if (!isKnown && this.problems.length < problemsMax) this.problems.push({ file, line, message })
  }

  /** Names and values; a merge key's only where the map has no such name itself. */
  map(value: ForeignValue, what: string): ReadonlyMap<string, ForeignValue> | undefined {
    return this.#fieldsOf(value, 0) ?? this.problem(value, `must be ${what}`)
  }

  list(value: ForeignValue, what: string): readonly ForeignValue[] | undefined {
    if (!isSeq(value.node)) return this.problem(value, `must be ${what}`)
    this.#items += value.node.items.length
    if (this.#items > itemsMax)
      return this.problem(value, `has more than ${itemsMax} entries including all earlier lists`)
    return value.node.items.map((item) => this.#value(item, offsetOf(item) ?? 0, value))
  }

  /** A map's own names, and after them those of its merge keys; undefined for what is none, or has too much in it. */
  #fieldsOf(value: ForeignValue, depth: number): Map<string, ForeignValue> | undefined {
    this.#merges += depth === 0 ? 0 : 1
    if (!isMap(value.node) || depth > mergeDepthMax || this.#merges > mergesMax) return undefined
    const fields = new Map<string, ForeignValue>()
    const before = new Set<string>()
    let merge: ForeignValue | undefined
    for (const { key, value: node } of value.node.items) {
      const name = isScalar(key) ? String(key.value) : ''
      const field = this.#value(node, offsetOf(key) ?? 0, value)
      if (fields.has(name) || (name === '<<' && merge !== undefined)) this.problem(field, `${name} is written twice`)
      else if (name === '<<') merge = field
      else fields.set(name, field)
      if (merge === undefined) before.add(name)
    }
    if (merge === undefined) return fields
    const merged = isSeq(merge.node) ? (this.list(merge, '') ?? []) : [merge]
    return merged.every((one) => this.#merge(one, { fields, before, spot: merge }, depth + 1)) ? fields : undefined
  }

  /** Puts in what is not there; a problem for what other readers of YAML understand otherwise. */
  #merge(
    value: ForeignValue,
    into: { readonly fields: Map<string, ForeignValue>; readonly before: ReadonlySet<string>; readonly spot: Spot },
    depth: number,
  ): boolean {
    const found = this.#fieldsOf(value, depth)
    for (const [name, field] of found ?? []) {
      const known = into.fields.get(name)
      if (known === undefined) into.fields.set(name, field)
      else if (into.before.has(name))
        this.problem(into.spot, `\`<<\` comes after ${name} and sets it too; put \`<<\` first`)
      else if (isMap(known.node) || isMap(field.node))
        this.problem(known, `${name} is also set by \`<<\`, and that server mixes both; write one of them in full`)
    }
    return found !== undefined
  }

  /** The value of an alias, at the position of the alias. */
  #value(node: unknown, offset: number, near?: Spot): ForeignValue {
    const spot = isAlias(node) && near !== undefined ? near : this.#spot(offsetOf(node) ?? offset)
    if (!isAlias(node)) return { ...spot, node }
    const at = offsetOf(node) ?? 0
    const own = this.#documents.find(({ end }) => at <= end)
    const meant: Node | undefined = own === undefined ? undefined : node.resolve(own.document)
    return { ...spot, node: meant ?? node, raw: node }
  }

  #spot(offset: number): Spot {
    const line = this.#lines.lineStarts.length === 0 ? 1 : this.#lines.linePos(offset).line
    return { file: this.#file, line: this.#linesBefore + line }
  }
}

/** Whether a value is not written, or is `null`. */
export const isEmpty = ({ node }: Pick<ForeignValue, 'node'>): boolean =>
  node === null || node === undefined || (typeof node === 'object' && 'value' in node && node.value === null)

function offsetOf(node: unknown): number | undefined {
  const isNode = isMap(node) || isSeq(node) || isScalar(node) || isAlias(node)
  return isNode ? node.range?.[0] : undefined
}
