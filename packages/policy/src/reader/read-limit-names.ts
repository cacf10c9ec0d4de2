import type { Limit } from '@weir/core/limits/limit.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** The limits by name; undefined stands for one that is there but wrong, so that what names it is not wrong too. */
export type Limits = ReadonlyMap<string, Limit | undefined>

const limitName = t.anyText('the name of a limit')

/** Names of limits with their positions; whether there are such limits is known when all are read. */
export const limitNames = t.list(
  'a list of limits by name',
  {
    schema: limitName.schema,
    read(reader: PolicyReader, at: SourcePosition) {
      const name = limitName.read(reader, at)
      return name === undefined ? undefined : { name, at }
    },
  },
  { nameOf: ({ name }) => name },
)
export type LimitNames = NonNullable<ReturnType<typeof limitNames.read>>

export interface NamedLimits {
  /** As written; some may be wrong themselves. */
  readonly names: ReadonlySet<string>
  /** Those that are right, in the order written. */
  readonly limits: readonly Limit[]
}

/** The limits with these names. */
export function findLimits(reader: PolicyReader, names: LimitNames, limits: Limits): NamedLimits {
  const found = names.map(({ name, at }) => reader.find(at, 'limit', name, limits))
  return { names: new Set(names.map(({ name }) => name)), limits: found.filter((limit) => limit !== undefined) }
}

/** Names of the limits for everybody. */
export const namesForAll = (limits: Limits): ReadonlySet<string> =>
  new Set([...limits.values()].filter((limit) => limit?.applies === 'all').map((limit) => limit?.name ?? ''))
