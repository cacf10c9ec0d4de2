import { isJsonObject, type JsonValue } from '../entities.ts'
import { type Fields, PolicyReader, type SourcePosition } from './policy-reader.ts'

/**
 * What JSON has; a Map is an object whose names keep their order, also those that are numbers, or for a list
 * whose items messages call by their names.
 */
export type PolicyValue = JsonValue | ReadonlyMap<string, PolicyValue>

/** Reads values that are there already. Problems have paths, and no lines. */
export class ValueReader extends PolicyReader {
  /** A value with the names that lead to it; without any, the whole policy. */
  open(value: PolicyValue, ...names: readonly string[]): SourcePosition {
    return names.reduce((at, name) => positionOf(at, name, value), positionOf(undefined, '', value))
  }

  map(at: SourcePosition, what: string): Fields | undefined {
    const { node } = at
    const fields = new Map<string, SourcePosition>()
    if (node instanceof Map) for (const [key, value] of node) fields.set(key, positionOf(at, key, value))
    else if (isJsonObject(node)) for (const key in node) fields.set(key, positionOf(at, key, node[key]))
    else return this.wrong(at, `must be ${what}`)
    return fields
  }

  list(at: SourcePosition, what: string): readonly SourcePosition[] | undefined {
    const { node } = at
    if (Array.isArray(node)) return node.map((item, index) => positionOf(at, index, item))
    return node instanceof Map
      ? Array.from(node, ([name, item]) => positionOf(at, name, item))
      : this.wrong(at, `must be ${what}`)
  }

  protected lineOf(): undefined {}

  protected isList(node: object): boolean {
    return Array.isArray(node)
  }
}

const positionOf = (parent: SourcePosition | undefined, key: string | number, node: unknown): SourcePosition => ({
  parent,
  key,
  node,
  valueOffset: 0,
  keyOffset: 0,
})
