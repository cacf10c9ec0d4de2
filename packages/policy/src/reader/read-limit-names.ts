import type { Limit } from '@weir/core/limits/limit.ts'
import type { Place, PolicyReader } from './policy-reader.ts'
import type { Limits } from './read-limits.ts'

export interface NamedLimits {
  /** As written; some may be wrong where they stand. */
  readonly names: ReadonlySet<string>
  /** Those that are right, in the order written. */
  readonly limits: readonly Limit[]
}

/** A list of limits by name, as plans and routes have one. */
export function readLimitNames(reader: PolicyReader, place: Place, limits: Limits): NamedLimits | undefined {
  const items = reader.list(place, 'a list of limits by name')
  if (items === undefined) return undefined
  const names = new Set<string>()
  for (const item of items) {
    const name = reader.text(item, 'the name of a limit', (text) => text)
    if (name === undefined) continue
    if (names.has(name)) reader.problem(item, `${name} is named twice`)
    names.add(name)
    if (!limits.has(name))
      reader.problem(item, `there is no limit ${JSON.stringify(name)}${reader.near(name, limits.keys())}`)
  }
  return { names, limits: [...names].map((name) => limits.get(name)).filter((limit) => limit !== undefined) }
}

/** Names of the limits for everybody. */
export const namesForAll = (limits: Limits): ReadonlySet<string> =>
  new Set([...limits.values()].filter((limit) => limit?.applies === 'all').map((limit) => limit?.name ?? ''))
