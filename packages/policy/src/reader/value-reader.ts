import { isJsonObject, type JsonValue } from '../entities.ts'
import { type Field, type Place, PolicyReader } from './policy-reader.ts'

/** What JSON has; a Map stands for an object whose names keep their order, also those that are numbers. */
export type PolicyValue = JsonValue | ReadonlyMap<string, PolicyValue>

/**
 * Reads values that are there already. It only tells whether there is a problem: who wants to know which reads their text
 * with a TextReader.
 */
export class ValueReader extends PolicyReader {
  #isRight = true

  /** Nobody reads it. */
  override near(): string {
    return ''
  }

  /** Whether no problem was added so far. */
  get isRight(): boolean {
    return this.#isRight
  }

  open(value: PolicyValue): Place {
    return placeOf(value)
  }

  problem(): undefined {
    this.#isRight = false
  }

  problemAtKey(): undefined {
    this.#isRight = false
  }

  protected wrong(): undefined {
    this.#isRight = false
  }

  lineOf(): number {
    return 0
  }

  isEmpty({ node }: Place): boolean {
    return node === null
  }

  map({ node }: Place): ReadonlyMap<string, Field> | undefined {
    const fields = new Map<string, Field>()
    if (node instanceof Map) for (const [key, value] of node) fields.set(key, fieldOf(key, value))
    else if (isJsonObject(node)) for (const key in node) fields.set(key, fieldOf(key, node[key]))
    else return this.wrong()
    return fields
  }

  list({ node }: Place): readonly Place[] | undefined {
    return Array.isArray(node) ? node.map(placeOf) : this.wrong()
  }

  scalar({ node }: Place): unknown {
    return typeof node === 'object' ? undefined : node
  }

  protected source({ node }: Place): string | undefined {
    return typeof node === 'object' ? undefined : String(node)
  }
}

const placeOf = (node: unknown): Place => ({ path: '', node, valueOffset: 0, keyOffset: 0 })
const fieldOf = (key: string, node: unknown): Field => ({ key, path: '', node, valueOffset: 0, keyOffset: 0 })
