import { isJsonObject, type PolicyFault } from '../entities.ts'
import { type Field, type Place, PolicyReader, pathOf } from './policy-reader.ts'
import { problemsMax, quoted } from './text-reader.ts'
import type { PolicyValue } from './value-reader.ts'

/**
 * Reads values that are there already and words their problems, as a TextReader does for a text, without the minutes that a
 * large text would take. The line of a place is the number of its entity, to be looked up in `entities`.
 */
export class WordingReader extends PolicyReader {
  readonly #problems: PolicyFault[] = []
  #left = 0
  /** Paths of entities by their number. */
  readonly entities: string[] = []

  get problems(): readonly PolicyFault[] {
    if (this.#left === 0) return this.#problems
    return [...this.#problems, { path: '', message: `and ${this.#left} more problems` }]
  }

  open(value: PolicyValue): Place {
    return { path: '', node: value, valueOffset: 0, keyOffset: 0 }
  }

  problem({ path }: Place, message: string): undefined {
    if (this.#problems.length < problemsMax) this.#problems.push({ path, message })
    else this.#left += 1
  }

  problemAtKey(place: Place, message: string): undefined {
    this.problem(place, message)
  }

  protected wrong(place: Place, message: string, hint = ''): undefined {
    return this.problem(place, `${message}, but is ${describe(place.node)}${hint}`)
  }

  lineOf({ keyOffset }: Place): number {
    return keyOffset
  }

  isEmpty({ node }: Place): boolean {
    return node === null
  }

  map(place: Place, what: string): ReadonlyMap<string, Field> | undefined {
    const { node } = place
    if (!(node instanceof Map) && !isJsonObject(node)) return this.wrong(place, `must be ${what}`)
    const entries: Iterable<readonly [string, unknown]> = node instanceof Map ? node : Object.entries(node)
    const fields = new Map<string, Field>()
    for (const [key, value] of entries) fields.set(key, { key, ...this.#below(place, pathOf(place.path, key), value) })
    return fields
  }

  list(place: Place, what: string): readonly Place[] | undefined {
    const { node, path } = place
    if (!Array.isArray(node)) return this.wrong(place, `must be ${what}`)
    return node.map((item: unknown, index) => this.#below(place, `${path}[${index}]`, item))
  }

  scalar({ node }: Place): unknown {
    return typeof node === 'object' ? undefined : node
  }

  protected source({ node }: Place): string | undefined {
    return typeof node === 'object' ? undefined : String(node)
  }

  /** What stands below a section is an entity, and all below it is of that entity. */
  #below({ path, keyOffset }: Place, own: string, node: unknown): Place {
    const isEntity = /^\w+$/.test(path)
    const number = isEntity ? this.entities.push(own) - 1 : keyOffset
    return { path: own, node, valueOffset: number, keyOffset: number }
  }
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  return quoted(typeof value === 'string' ? JSON.stringify(value) : String(value))
}
