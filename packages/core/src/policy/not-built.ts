import type { Field, PolicyReader } from './policy-reader.ts'

/**
 * What weir.yaml's format has and this version does not. Each is still checked for its form, then refused by its name:
 * a policy that is accepted is held to in every word. Building one of them means deleting its line here.
 */
type ReadField = (reader: PolicyReader, field: Field) => unknown
const readText: ReadField = (reader, field) => reader.text(field, 'a text', (text) => text)

/** Keys of a limit that are refused whatever their value. */
const limitKeysNotBuilt: ReadonlyMap<string, ReadField> = new Map([['onExceed', readText]])

export const limitKeyNamesNotBuilt: readonly string[] = [...limitKeysNotBuilt.keys()]

/** Adds a problem for every key of a limit that waits to be built. */
export function refuseLimitKeys(reader: PolicyReader, fields: ReadonlyMap<string, Field>): void {
  for (const [name, read] of limitKeysNotBuilt) {
    const field = fields.get(name)
    if (field === undefined || read(reader, field) === undefined) continue
    reader.problemAtKey(field, notBuilt(`\`${name}\``))
  }
}

/** The words for all of them. `instead` names what there is. */
export function notBuilt(what: string, instead = ''): string {
  return `this version of Weir does not have ${what}${instead === '' ? '' : `; it has ${instead}`}`
}
