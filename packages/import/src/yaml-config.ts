import { isMap, isScalar } from 'yaml'
import { ForeignFile, type ForeignValue, isEmpty } from './foreign-file.ts'
import type { InputFile } from './imported-policy.ts'

/** The largest size of a limit. */
const sizeMax = 9_000_000_000_000_000

const words: ReadonlyMap<string, boolean> = new Map(
  Object.entries({ true: true, yes: true, on: true, y: true, false: false, no: false, off: false, n: false }),
)

/** A value with its line, read as a map whose fields may be left out: what is not there is empty. */
export class Entry implements ForeignValue {
  readonly file: string
  readonly line: number
  readonly node: unknown
  readonly raw: unknown
  readonly isMap: boolean
  /** Whether it is not written, or is `null`. */
  readonly isEmpty: boolean
  readonly #from: ForeignFile
  readonly #what: string
  #fields: ReadonlyMap<string, ForeignValue> | undefined

  /** `what` is for the problem of a value that is no map. */
  constructor(from: ForeignFile, { file, line, node, raw }: ForeignValue, what = 'a map') {
    this.file = file
    this.line = line
    this.node = node
    this.raw = raw ?? node
    this.isMap = isMap(node)
    this.isEmpty = isEmpty({ node })
    this.#from = from
    this.#what = what
  }

  /** The fields of the map; a problem is added, once, for a value that is none. */
  get fields(): ReadonlyMap<string, ForeignValue> {
    this.#fields ??= this.isEmpty ? new Map() : (this.#from.map(this, this.#what) ?? new Map())
    return this.#fields
  }

  at(name: string, what?: string): Entry {
    return new Entry(this.#from, this.fields.get(name) ?? { file: this.file, line: this.line, node: null }, what)
  }

  /** The fields that are not empty, as maps. */
  entries(): readonly (readonly [name: string, value: Entry])[] {
    return [...this.fields].flatMap(([name, value]) => (isEmpty(value) ? [] : [[name, new Entry(this.#from, value)]]))
  }

  items(name: string, what = 'a list', each?: string): readonly Entry[] {
    const field = this.at(name)
    const items = field.isEmpty ? [] : (this.#from.list(field, what) ?? [])
    return items.map((item) => new Entry(this.#from, item, each))
  }

  /** A scalar as written, whatever YAML takes it for; empty for an empty one. */
  text(name: string): string {
    return this.at(name).asText(name)
  }

  /** The value itself as text. */
  asText(name = 'entry'): string {
    if (this.isEmpty) return ''
    if (!isScalar(this.node)) return this.problem(`\`${name}\` must be a text`) ?? ''
    const { value, source } = this.node
    const text = typeof value === 'string' ? value : (source ?? String(value))
    return text.isWellFormed() ? text : (this.problem(`\`${name}\` contains half a character`) ?? '')
  }

  texts(name: string): readonly string[] {
    return this.items(name).map((item) => item.asText(name))
  }

  flag(name: string, byDefault = false): boolean {
    const text = this.text(name)
    const found = text === '' ? byDefault : words.get(text.toLowerCase())
    if (found === undefined) this.at(name).problem(`\`${name}\` must be true or false, but is ${text}`)
    return found ?? byDefault
  }

  /** A whole number; undefined where there is none. */
  number(name: string, max = sizeMax): number | undefined {
    const [field, text] = [this.at(name), this.text(name)]
    if (field.isEmpty) return undefined
    if (/^(?:0|[1-9]\d{0,14})$/.test(text) && Number(text) <= max) return Number(text)
    const isOctal = /^0\d/.test(text)
    if (isOctal)
      return field.problem(`\`${name}\` is ${text}, which that server reads as octal; remove the leading zero`)
    return field.problem(`\`${name}\` must be a whole number from 0 to ${max}, but is ${text || 'empty'}`)
  }

  problem(message: string): undefined {
    return this.#from.problem(this, message)
  }
}

/** A YAML file with its documents, of which there is one at least unless it has problems. */
export interface YamlFile {
  readonly file: ForeignFile
  readonly documents: readonly Entry[]
}

/** Opens YAML files, and instead of each ConfigMap of Kubernetes the files that it has. */
export const openYaml = (files: readonly InputFile[]): readonly YamlFile[] =>
  files.flatMap(({ name, text }) => open(name, text, 0))

function open(name: string, text: string, linesBefore: number): readonly YamlFile[] {
  const file = new ForeignFile(name, linesBefore)
  const all = file.documents(text).map((value) => new Entry(file, value))
  const maps = all.filter((one) => kindOf(one) === 'ConfigMap')
  const documents = maps.length === 0 ? all : all.filter((one) => mayLimit.test(kindOf(one)))
  const values = maps.flatMap((map) => map.at('data').entries())
  const inMaps = values.flatMap(([, one]) => {
    const isBlock = isScalar(one.node) && /^BLOCK/.test(one.node.type ?? '')
    return open(name, one.asText(), isBlock ? one.line : one.line - 1)
  })
  return [{ file, documents }, ...inMaps]
}

/** Resources of Kubernetes that a ConfigMap may stand beside and that limit requests. */
const mayLimit = /^(?:Middleware|Ingress|Kong|List)/
const kindOf = (document: Entry) => (document.isMap ? document.text('kind') : '')
