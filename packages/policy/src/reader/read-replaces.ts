import type { Limit } from '@weir/core/limits/limit.ts'
import type { Field, Place, PolicyReader } from './policy-reader.ts'

/** What a limit says in `replaces`, with where it says it. */
export interface Replacing {
  /** The limit's own. */
  readonly name: string
  readonly replaced: readonly { readonly name: string; readonly place: Place }[]
}

/** The `replaces` of a limit, as far as it is a list of texts. Whether there are such limits is known when all are read. */
export function readReplaces(reader: PolicyReader, field: Field, name: string): Replacing | undefined {
  const items = reader.list(field, 'a list of limits by name') ?? []
  const replaced = items.flatMap((place) => {
    const text = reader.text(place, 'the name of a limit', (found) => found)
    return text === undefined ? [] : [{ name: text, place }]
  })
  return replaced.length === 0 ? undefined : { name, replaced }
}

/** What of it becomes part of the limit. */
export const namesReplaced = (replacing: Replacing | undefined): Pick<Limit, 'replaces'> =>
  replacing === undefined ? {} : { replaces: replacing.replaced.map(({ name }) => name) }

/**
 * Adds a problem for every name that is no limit's, that is the limit's own, or whose limit replaces others itself: with chains
 * two limits could replace each other, and nobody would be held to either.
 */
export function checkReplaced(
  reader: PolicyReader,
  limits: ReadonlyMap<string, Limit | undefined>,
  replacing: readonly Replacing[],
): void {
  const theirs = new Set(replacing.map(({ name }) => name))
  for (const { name: own, replaced } of replacing) {
    for (const { name, place } of replaced) {
      if (!limits.has(name)) {
        reader.problem(place, `there is no limit ${JSON.stringify(name)}${reader.near(name, limits.keys())}`)
      } else if (name === own) reader.problem(place, 'a limit cannot replace itself')
      else if (theirs.has(name)) {
        reader.problem(
          place,
          `${name} replaces limits itself; name those here too, and none of them may replace others`,
        )
      }
    }
  }
}
