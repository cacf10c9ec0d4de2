import type { Spot } from './foreign-file.ts'
import type { ImportNote, InputFile } from './imported-policy.ts'

/** Collects notes. A second one of the same words and line is none. */
export class Notes {
  readonly #notes = new Map<string, ImportNote>()

  /** Names what the policy does not have. */
  lost(spot: Spot, what: string, advice = 'Add it to the policy if you need it.'): void {
    this.#add('lost', spot, what, advice)
  }

  /** Names what the policy has, and means something else. */
  changed(spot: Spot, what: string, advice = 'Nothing, unless the difference matters to you.'): void {
    this.#add('changed', spot, what, advice)
  }

  /** Names what means the same. */
  info(spot: Spot, what: string, advice = 'Nothing.'): void {
    this.#add('info', spot, what, advice)
  }

  #add(kind: ImportNote['kind'], { file, line }: Spot, what: string, advice: string): void {
    const said = `${file}:${line} ${what}`
    if (!this.#notes.has(said)) this.#notes.set(said, { file, line, kind, what, advice })
  }

  /** Names each field that is not known. */
  nameUnknown(fields: ReadonlyMap<string, Spot>, known: RegExp, of: string): void {
    for (const [name, field] of fields) if (!known.test(name)) this.lost(field, `${name} of ${of}: not known here`)
  }

  /** The notes by file and line. */
  inOrderOf(files: readonly InputFile[]): readonly ImportNote[] {
    const places = new Map(files.map(({ name }, at) => [name, at]))
    const placeOf = ({ file }: Spot) => places.get(file) ?? 0
    return [...this.#notes.values()].toSorted((a, b) => placeOf(a) - placeOf(b) || a.line - b.line)
  }
}
