import { isScalar } from 'yaml'
import { ForeignFile, type ForeignValue, isEmpty } from './foreign-file.ts'
import type { InputFile } from './imported-policy.ts'

/** The fields of a map, each with its line. */
export type Fields = ReadonlyMap<string, ForeignValue>

const none: Fields = new Map()

/** A YAML file whose fields may be left out: what is not there is empty. */
export class YamlConfig {
  readonly file: ForeignFile

  /** `linesBefore` is where the text begins in the file, if the file has it in a value. */
  constructor(name: string, linesBefore = 0) {
    this.file = new ForeignFile(name, linesBefore)
  }

  fields(value: ForeignValue | undefined): Fields {
    return value === undefined || isEmpty(value) ? none : (this.file.map(value, 'a map') ?? none)
  }

  items(value: ForeignValue | undefined): readonly ForeignValue[] {
    return value === undefined || isEmpty(value) ? [] : (this.file.list(value, 'a list') ?? [])
  }

  text(fields: Fields, name: string): string {
    const field = fields.get(name)
    return field === undefined ? '' : (this.file.text(field, name) ?? '')
  }

  texts(fields: Fields, name: string): readonly string[] {
    return this.items(fields.get(name)).flatMap((item) => this.file.text(item, name) ?? [])
  }

  flag(fields: Fields, name: string, byDefault: boolean): boolean {
    const field = fields.get(name)
    return field === undefined || isEmpty(field) ? byDefault : (this.file.flag(field, name) ?? byDefault)
  }

  /** A whole number; undefined where there is none. */
  number(fields: Fields, name: string): number | undefined {
    const field = fields.get(name)
    return field === undefined || isEmpty(field) ? undefined : this.file.wholeNumber(field, sizeMax, name)
  }
}

/** The largest size of a limit. */
const sizeMax = 9_000_000_000_000_000

/** A file, or a text that a ConfigMap of Kubernetes has in a value. */
export interface ConfigFile extends InputFile {
  readonly linesBefore: number
}

/** Files as they are, and instead of each ConfigMap the texts that it has. */
export function withoutConfigMaps(files: readonly InputFile[]): readonly ConfigFile[] {
  return files.flatMap((file) => {
    if (!/^\s*"?kind"?:\s*"?ConfigMap\b/m.test(file.text)) return [{ ...file, linesBefore: 0 }]
    const config = new YamlConfig(file.name)
    const texts = config.file.documents(file.text).flatMap((document) => {
      const fields = config.fields(document)
      if (config.text(fields, 'kind') !== 'ConfigMap') return []
      return [...config.fields(fields.get('data'))].map(([name, { line, node }]): ConfigFile => {
        const isBlock = isScalar(node) && (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED')
        const text = config.text(config.fields(fields.get('data')), name)
        return { name: file.name, text, linesBefore: isBlock ? line : line - 1 }
      })
    })
    return texts.length === 0 ? [{ ...file, linesBefore: 0 }] : texts
  })
}
